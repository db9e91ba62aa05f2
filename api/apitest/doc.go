// Package apitest holds fakes of everything that the API works with, all in memory. A World is a set of them that fit
// together; tests reach into its parts to make them fail, wait or lag.
package apitest
