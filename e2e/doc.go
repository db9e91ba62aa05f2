// Package e2e runs scenarios against real processes of the binary: it starts them, kills them, and checks from outside,
// through the API and the log, what the delivery contract promises. It uses nothing of the product but its binary and
// its public interfaces.
package e2e
