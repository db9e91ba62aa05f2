//go:build !linux

package native

import "errors"

var errNoNamespaces = errors.New("only Linux has namespaces")

func runApart(...string) (int, error) { return 0, errNoNamespaces }

func settleIn() error { return errNoNamespaces }
