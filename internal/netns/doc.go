// Package netns runs a test binary again in Linux namespaces of its own, for servers whose ports bind every interface.
package netns
