package serve

import (
	"crypto/rand"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// tokenLife is how long a URL waits for its client.
	tokenLife = time.Minute

	// maxTokens is how many URLs may wait, so that a client that only asks for
	// them does not fill the memory.
	maxTokens = 1000
)

// tokens are the URLs that were given out and not used yet, with the requests
// that they were given out for. There is a secret in each.
type tokens struct {
	// mu guards the fields below.
	mu      sync.Mutex
	waiting map[string]ticket // by the URL's path
}

type ticket struct {
	request any
	expires time.Time
}

func newTokens() *tokens { return &tokens{waiting: map[string]ticket{}} }

// issue returns a path below what for one use of req.
func (t *tokens) issue(what string, req any) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if len(t.waiting) >= maxTokens {
		for path, ticket := range t.waiting {
			if now.After(ticket.expires) {
				delete(t.waiting, path)
			}
		}
	}
	if len(t.waiting) >= maxTokens {
		return "", status.Errorf(codes.ResourceExhausted, "serve: %d streams were asked for within %s and not opened", maxTokens, tokenLife)
	}
	path := "/" + what + "/" + rand.Text()
	t.waiting[path] = ticket{request: req, expires: now.Add(tokenLife)}
	return path, nil
}

// take returns the request of a path, once, or nil.
func (t *tokens) take(path string) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	ticket, ok := t.waiting[path]
	delete(t.waiting, path)
	if !ok || time.Now().After(ticket.expires) {
		return nil
	}
	return ticket.request
}
