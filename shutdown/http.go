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

// NewManual returns a [Manual] whose handler permits changes only to clients that can read tokenFile:
// POST and DELETE require the token, and cross-origin requests are rejected. NewManual writes a new
// token to the file with mode 0600, as the header that curl -H @tokenFile sends. It creates the
// directory of the file, and returns an error if the file cannot be written.
func NewManual(tokenFile string) (*Manual, error) {
	token := "Bearer " + rand.Text()
	err := os.MkdirAll(filepath.Dir(tokenFile), 0o711)
	if err == nil {
		err = checkpoint.Replace(tokenFile, []byte("Authorization: "+token+"\n"), 0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("shutdown: write token: %w", err)
	}
	m := new(Manual)
	m.handler = http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !reads && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this request requires the header in the token file: curl -H @FILE", http.StatusUnauthorized)
			return
		}
		m.serve(w, r)
	}))
	return m, nil
}
