package openai

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

const maxKeyBytes = 16 << 10

// KeyFromFile reads the key from a file, anew for every call; white space around it does not count.
func KeyFromFile(path string) func() (string, error) {
	return func() (string, error) {
		file, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("API key: %w", err)
		}
		defer file.Close()
		b, err := io.ReadAll(io.LimitReader(file, maxKeyBytes+1))
		if err != nil {
			return "", fmt.Errorf("API key: %w", err)
		}
		if len(b) > maxKeyBytes {
			return "", fmt.Errorf("API key: %s is longer than %d bytes", path, maxKeyBytes)
		}
		key := strings.TrimSpace(string(b))
		if key == "" {
			return "", fmt.Errorf("API key: %s is empty", path)
		}
		return key, nil
	}
}

// KeyFromEnv takes the key from an environment variable, which must be set and not empty.
func KeyFromEnv(name string) func() (string, error) {
	return func() (string, error) {
		key := strings.TrimSpace(os.Getenv(name))
		if key == "" {
			return "", errors.New("API key: the variable " + name + " is not set")
		}
		return key, nil
	}
}
