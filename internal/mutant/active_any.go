//go:build mutant && mutant_any

package mutant

import "os"

// Active is the mutant of a run: a build that has all of them is told by MUTANT which one it is.
var Active = Name(os.Getenv("MUTANT"))
