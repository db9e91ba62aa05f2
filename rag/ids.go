package rag

import (
	"fmt"
	"strconv"
	"strings"
)

// EventKey is the key of a submission's events and timeline: a message id is scoped to its document. The length in front
// keeps it unambiguous, whatever characters the ids have.
func EventKey(documentID, messageID string) string {
	return strconv.Itoa(len(documentID)) + ":" + documentID + messageID
}

// ParseEventKey is the inverse of EventKey.
func ParseEventKey(key string) (documentID, messageID string, err error) {
	length, rest, ok := strings.Cut(key, ":")
	n, convErr := strconv.Atoi(length)
	if !ok || convErr != nil || n < 0 || n > len(rest) || strconv.Itoa(n) != length {
		return "", "", fmt.Errorf("event key %q: no document id of the stated length", key)
	}
	return rest[:n], rest[n:], nil
}
