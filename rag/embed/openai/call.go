package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// A reply may have so many bytes: those of 5,000 numbers a text, as long as a float64 gets, and an envelope.
const (
	replyBytes        = 256 << 10
	replyBytesPerText = 128 << 10
	maxErrorBody      = 64 << 10
)

// call makes one call of the service and returns one vector per text, in order, unchecked. Its error is an
// *embed.Error or a *refusal.
func (c *Client) call(ctx context.Context, texts []string) ([][]float32, error) {
	key, err := c.key()
	if err != nil {
		return nil, &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonUnauthorized, Err: err}
	}
	req, err := c.request(ctx, key, texts)
	if err != nil {
		return nil, &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonMisconfigured, Err: err}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, transportError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		// The status says enough where the body cannot be read.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, c.statusError(resp, redact(message(body), key))
	}
	limit := replyBytes + replyBytesPerText*len(texts)
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err != nil {
		return nil, transportError(ctx, err)
	}
	if len(body) > limit {
		return nil, badReply(fmt.Errorf("it is longer than %d bytes", limit))
	}
	vectors, err := readReply(body, len(texts))
	if err != nil {
		return nil, badReply(err)
	}
	return vectors, nil
}

func (c *Client) request(ctx context.Context, key string, texts []string) (*http.Request, error) {
	body, err := json.Marshal(struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Encoding string   `json:"encoding_format"`
	}{c.model, texts, "float"})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "waymark")
	if key != "" {
		if strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
			return nil, errors.New("the API key holds characters that a header cannot carry")
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	return req, nil
}
