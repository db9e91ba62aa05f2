//go:build mutant && mutant_wall_clock_versions

package mutant

// Active is the mutant of this build.
const Active = WallClockVersions
