package main

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net/http"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// tokenFile is the file in --root that has the header of those who may end the pods.
const tokenFile = "shutdown-token"

// newToken writes a header with a token of this start into a file that only the agent's
// user may read, as curl -H @FILE sends it: on a command line everybody could read it.
// It returns the header's value.
func newToken(path string) (string, error) {
	token := "Bearer " + rand.Text()
	if err := checkpoint.Replace(path, []byte("Authorization: "+token+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("--shutdown-on=http: no file for the token that it asks for; choose another --root: %w", err)
	}
	return token, nil
}

// onlyWith refuses those who want more than to look and don't have the token.
func onlyWith(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		looks := r.Method == http.MethodGet || r.Method == http.MethodHead
		if !looks && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte(token)) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "this needs the header in the file "+tokenFile+" in the agent's --root: curl -H @FILE", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
