package server

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// guarded lets only those through to next who may ask what they ask (sv-13 … sv-17).
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := s.cfg.Authenticator.Authenticate(r)
		if errors.Is(err, auth.ErrTooManyReviews) {
			w.Header().Set("Connection", "close")
			s.refuseForNow(w, r, err)
			return
		}
		if err != nil || user == nil {
			s.log.Info("who asks is not known", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
			refuse(w, http.StatusUnauthorized, "Unauthorized") // sv-13
			return
		}
		if !clean(r.URL.Path) {
			refuse(w, http.StatusBadRequest, "the path is not in its shortest form\n")
			return
		}
		ways := Attributes(s.cfg.NodeName, r)
		if len(ways) == 0 {
			refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed\n")
			return
		}
		d, err := auth.Any(r.Context(), s.cfg.Authorizer, user, ways...)
		broadest := ways[len(ways)-1]
		switch {
		case d.Allowed:
			trust(r.Context())
			next.ServeHTTP(w, r)
		case errors.Is(err, auth.ErrTooManyReviews):
			s.refuseForNow(w, r, err)
		case err != nil: // sv-17
			s.log.Error("who may do this is not known", "user", user.Name, "what", broadest, "err", err)
			refuse(w, http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)",
				user.Name, broadest.Verb, broadest.Resource, broadest.Subresource))
		default:
			s.log.Info("forbidden", "user", user.Name, "what", broadest, "because", d.Reason)
			refuse(w, http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=%s, subresource(s)=%v)\n",
				user.Name, broadest.Verb, broadest.Resource, subresources(ways)))
		}
	})
}

// refuseForNow answers 429 while too many reviews are pending. It logs for debugging
// only: a flood causes many of these.
func (s *Server) refuseForNow(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Debug("Refused request: too many reviews are pending", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "err", err)
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "Too Many Requests\n")
}

func subresources(ways []auth.Attributes) (names []string) {
	for _, w := range ways {
		names = append(names, w.Subresource)
	}
	return names
}

// clean reports whether a path means what it says: who is authorised for /a/../b has
// not been asked about /b.
func clean(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return false
	}
	short := path.Clean(p)
	return p == short || p == short+"/"
}

// refuse answers with a text, which is exact: no line is added. Who is refused for
// what he is gets no further request on this connection.
func refuse(w http.ResponseWriter, code int, text string) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	if code == http.StatusUnauthorized {
		h.Set("Connection", "close")
	}
	w.WriteHeader(code)
	fmt.Fprint(w, text)
}
