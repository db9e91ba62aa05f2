package embed

// CanaryTexts are what every embedder can embed: what Canary asks a service for. There are two, so that a length read
// off one broken vector is not taken for the model's.
func CanaryTexts() []string {
	return []string{"Waymark asks whether this service works.", "This is the second of two short sentences."}
}
