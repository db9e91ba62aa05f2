//go:build !unix

package datadir

// alive cannot tell here; the pid is believed.
func alive(int) bool { return true }
