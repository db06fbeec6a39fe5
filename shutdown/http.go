package shutdown

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// An HTTP is a [Manual] whose handler permits changes only to clients that can read a
// file with a token. [NewHTTP] constructs it.
type HTTP struct {
	Manual
	handler http.Handler
}

// NewHTTP writes a new token to tokenFile with mode 0600, as the header that curl -H
// @tokenFile sends, and returns a Trigger that is an http.Handler for it. It creates the
// directory of the file, and returns an error if the file cannot be written.
func NewHTTP(tokenFile string) (*HTTP, error) {
	token := "Bearer " + rand.Text()
	err := os.MkdirAll(filepath.Dir(tokenFile), 0o711)
	if err == nil {
		err = checkpoint.Replace(tokenFile, []byte("Authorization: "+token+"\n"), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("shutdown: write token: %w", err)
	}
	h := new(HTTP)
	h.handler = http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reads && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this request requires the header in the token file: curl -H @FILE", http.StatusUnauthorized)
			return
		}
		h.Manual.ServeHTTP(w, r)
	}))
	return h, nil
}

// ServeHTTP is Manual.ServeHTTP. POST and DELETE require the token; cross-origin requests are
// rejected.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.handler.ServeHTTP(w, r) }
