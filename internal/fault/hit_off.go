//go:build !faults

package fault

// Hit does nothing in this build.
func Hit(string) {}
