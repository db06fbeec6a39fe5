package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// A User is somebody who asks for something.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// The groups and the name that the API server gives those who it knows, and
// those who it does not.
const (
	AuthenticatedGroup   = "system:authenticated"
	UnauthenticatedGroup = "system:unauthenticated"
	AnonymousName        = "system:anonymous"
)

// ErrUnauthorized: whoever asks has shown something that is not good.
var ErrUnauthorized = errors.New("Unauthorized")

// ErrTooManyReviews is returned at once, without asking the API server, when too many
// reviews are pending in all, from a remote host, or for a user. The request may be
// repeated later.
var ErrTooManyReviews = errors.New("too many reviews are pending")

// An Authenticator finds out who makes a request. It returns nil without an error
// if the request says nothing that it knows how to read, so that another one may
// be asked. It may be called from any goroutine.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// Chain asks one after the other (sv-13): the first who knows the user wins, and
// one who says no does not keep the others from being asked. If nobody knows, the
// error is ErrUnauthorized, joined with what they said.
type Chain []Authenticator

// Authenticate implements Authenticator.
func (c Chain) Authenticate(r *http.Request) (*User, error) {
	errs := []error{ErrUnauthorized}
	for _, a := range c {
		user, err := a.Authenticate(r)
		if user != nil && err == nil {
			return user, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(errs...)
}

// Anonymous knows everybody who shows nothing as nobody. It is the last of a
// Chain, and does not help one who has shown a token or a certificate that is not
// good.
type Anonymous struct{}

// Authenticate implements Authenticator.
func (Anonymous) Authenticate(r *http.Request) (*User, error) {
	if r.Header.Get("Authorization") != "" || r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return nil, nil
	}
	return &User{Name: AnonymousName, Groups: []string{UnauthenticatedGroup}}, nil
}

// Attributes are what somebody wants to do, in the words of the API server's
// roles: either to a resource, or at a path.
type Attributes struct {
	Verb string

	Group, Version, Resource, Subresource string
	Namespace, Name                       string

	Path string // of what is no resource; then only Verb is looked at beside it
}

func (a Attributes) String() string {
	if a.Path != "" {
		return a.Verb + " " + a.Path
	}
	what := a.Resource
	if a.Subresource != "" {
		what += "/" + a.Subresource
	}
	return fmt.Sprintf("%s %s %s", a.Verb, what, a.Name)
}

// A Decision is an answer, and why.
type Decision struct {
	Allowed bool
	Reason  string
}

// An Authorizer says whether somebody may do something. An error means that it
// does not know. It may be called from any goroutine.
type Authorizer interface {
	Authorize(ctx context.Context, user *User, what Attributes) (Decision, error)
}

// Any allows what is allowed in one way at least (sv-16): it asks about one after
// the other until one is. If none is, and somebody did not know about one of
// them, that is an error.
func Any(ctx context.Context, a Authorizer, user *User, ways ...Attributes) (Decision, error) {
	var errs []error
	var last Decision
	for _, way := range ways {
		d, err := a.Authorize(ctx, user, way)
		switch {
		case err != nil:
			errs = append(errs, err)
		case d.Allowed:
			return d, nil
		default:
			last = d
		}
	}
	return last, errors.Join(errs...)
}

// AlwaysAllow lets everybody do everything.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, *User, Attributes) (Decision, error) {
	return Decision{Allowed: true}, nil
}

// in adds a group to those of a user, once.
func in(groups []string, group string) []string {
	if slices.Contains(groups, group) {
		return groups
	}
	return append(slices.Clone(groups), group)
}
