package main

import (
	"runtime/debug"
)

type versionCmd struct{}

// version of the binary, as the linker has recorded it.
type version struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	// Modified says that the binary was built from a tree with changes that are not in the commit.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func readVersion() version {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version{Version: "unknown", Go: "unknown"}
	}
	return versionOf(info)
}

func versionOf(info *debug.BuildInfo) version {
	v := version{Version: info.Main.Version, Go: info.GoVersion}
	if v.Version == "" || v.Version == "(devel)" {
		v.Version = "devel"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}

func (versionCmd) Run(env *environment) error { return env.showVersion(readVersion()) }

func (e *environment) showVersion(v version) error {
	if e.globals.JSON {
		return e.writeJSON(v)
	}
	commit := v.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case v.Modified:
		commit += " (modified)"
	}
	e.console.Printf("waymark %s\ncommit  %s\ngo      %s\n", v.Version, commit, v.Go)
	return nil
}
