package serve

import (
	"crypto/rand"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

const (
	// tokenLife is how long a URL is valid.
	tokenLife = time.Minute

	// maxTokens is the maximum number of pending URLs, which limits memory.
	maxTokens = 1000
)

// tokens maps the issued and unused URLs to their requests. Each URL contains a secret.
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

// issue returns a path below what that is valid for one use of req.
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
		return "", status.Errorf(codes.ResourceExhausted, "serve: too many pending streams: %d within %s", maxTokens, tokenLife)
	}
	path := "/" + what + "/" + rand.Text()
	t.waiting[path] = ticket{request: req, expires: now.Add(tokenLife)}
	return path, nil
}

// take returns the request of a path, once; nil if there is none.
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
