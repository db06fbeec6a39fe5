package server

import (
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// authorize authenticates and authorizes requests before it passes them to next (rules
// sv-13 to sv-17).
func (s *Server) authorize(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, err := s.cfg.Authenticator.Authenticate(r)
		if errors.Is(err, auth.ErrTooManyReviews) {
			w.Header().Set("Connection", "close")
			s.refuseTemporarily(w, r, err)
			return
		}
		if err != nil || user == nil {
			if ok, suppressed := s.refusals.allow(time.Now()); ok {
				s.log.Info("Refused request: not authenticated", "method", r.Method, "path", r.URL.Path, "remoteAddr", r.RemoteAddr, "suppressed", suppressed, "err", err)
			}
			refuse(w, http.StatusUnauthorized, "Unauthorized") // rule sv-13
			return
		}
		if !clean(r.URL.Path) {
			refuse(w, http.StatusBadRequest, "the path is not canonical\n")
			return
		}
		attributes := Attributes(s.cfg.NodeName, r)
		if len(attributes) == 0 {
			refuse(w, http.StatusMethodNotAllowed, "Method Not Allowed\n")
			return
		}
		d, err := auth.Any(r.Context(), s.cfg.Authorizer, user, attributes...)
		broadest := attributes[len(attributes)-1]
		switch {
		case d.Allowed:
			markAuthenticated(r.Context())
			next.ServeHTTP(w, r)
		case errors.Is(err, auth.ErrTooManyReviews):
			s.refuseTemporarily(w, r, err)
		case err != nil:
			s.log.Error("Failed to authorize request; it is refused", "user", user.Name, "attributes", broadest, "err", err)
			refuse(w, http.StatusInternalServerError, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=%s, subresource=%s)",
				user.Name, broadest.Verb, broadest.Resource, broadest.Subresource))
		default:
			if ok, suppressed := s.refusals.allow(time.Now()); ok {
				s.log.Info("Refused request: forbidden", "user", user.Name, "attributes", broadest, "reason", d.Reason, "suppressed", suppressed)
			}
			refuse(w, http.StatusForbidden, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=%s, subresource(s)=%v)\n",
				user.Name, broadest.Verb, broadest.Resource, subresources(attributes)))
		}
	})
}

// refuseTemporarily responds with 429 while too many reviews are pending. It logs at level
// debug, since a flood causes many of these responses.
func (s *Server) refuseTemporarily(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Debug("Refused request: too many reviews are pending", "method", r.Method, "path", r.URL.Path, "remoteAddr", r.RemoteAddr, "err", err)
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, "Too Many Requests\n")
}

func subresources(attributes []auth.Attributes) (names []string) {
	for _, w := range attributes {
		names = append(names, w.Subresource)
	}
	return names
}

// clean reports whether a path is canonical: a client that may access /a/../b was not
// authorized for /b.
func clean(p string) bool {
	if !strings.HasPrefix(p, "/") || strings.ContainsRune(p, 0) {
		return false
	}
	short := path.Clean(p)
	return p == short || p == short+"/"
}

// refuse responds with an exact text: no newline is added. After a 401 the connection is
// closed.
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
