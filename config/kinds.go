package config

import "strings"

// kind is a kind of store or embedding service, or a mode. The names of those that are not available yet are reserved, so that
// they are told from mistakes.
type kind struct {
	name      string
	available bool
}

var (
	storeKinds     = []kind{{"sqlite", true}, {"weaviate", true}}
	splittingModes = []kind{{"structure", true}, {"sentence", true}, {"tokens", true}, {"page", true}}
	embeddingKinds = []kind{
		{"builtin", true}, {"openai", true},
		{"ollama", false}, {"cohere", false}, {"voyage", false}, {"weaviate", false},
	}
)

// checkKind reports a kind that does not exist or is not available.
func (r *report) checkKind(key, name string, kinds []kind) {
	var available []string
	for _, k := range kinds {
		if k.available {
			available = append(available, k.name)
		}
	}
	list := strings.Join(available, ", ")
	for _, k := range kinds {
		if k.name == name {
			if !k.available {
				r.add(key, "%s is not yet available; this release has %s", name, list)
			}
			return
		}
	}
	r.add(key, "%q is none of %s", name, list)
}
