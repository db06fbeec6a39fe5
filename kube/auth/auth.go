package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// A User is an authenticated user.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Groups and the name that the API server assigns to authenticated users and to anonymous
// requests.
const (
	AuthenticatedGroup   = "system:authenticated"
	UnauthenticatedGroup = "system:unauthenticated"
	AnonymousName        = "system:anonymous"
)

// ErrUnauthorized is returned for requests without valid credentials.
var ErrUnauthorized = errors.New("Unauthorized")

// ErrTooManyReviews is returned at once, without asking the API server, when too many
// reviews are pending in all, from a remote host, or for a user. The request may be
// repeated later.
var ErrTooManyReviews = errors.New("too many reviews are pending")

// An Authenticator authenticates requests. It returns nil without an error if the request
// has no credentials of its kind. It must be safe for concurrent use.
type Authenticator interface {
	Authenticate(r *http.Request) (*User, error)
}

// A Chain calls Authenticators in order until one returns a user; errors do not stop it
// (rule sv-13), but a request with invalid credentials is not [Anonymous]. If none returns a user, the
// error is ErrUnauthorized, joined with theirs.
type Chain []Authenticator

// Authenticate implements Authenticator.
func (c Chain) Authenticate(r *http.Request) (*User, error) {
	errs, invalid := []error{ErrUnauthorized}, false
	for _, a := range c {
		if _, ok := a.(Anonymous); ok && invalid {
			continue
		}
		user, err := a.Authenticate(r)
		if user != nil && err == nil {
			return user, nil
		}
		errs, invalid = append(errs, err), invalid || err != nil
	}
	return nil, errors.Join(errs...)
}

// Anonymous authenticates requests as system:anonymous. It must be the last of a [Chain], which does
// not call it if an Authenticator before it has found invalid credentials. Credentials that none of
// them examines, such as tokens without [Tokens], are ignored, as by the kubelet.
type Anonymous struct{}

// Authenticate implements Authenticator.
func (Anonymous) Authenticate(*http.Request) (*User, error) {
	return &User{Name: AnonymousName, Groups: []string{UnauthenticatedGroup}}, nil
}

// Attributes describe an operation for authorization, as in the API server: on a resource,
// or on a path.
type Attributes struct {
	Verb string

	Group, Version, Resource, Subresource string
	Namespace, Name                       string

	Path string // non-resource path; only Verb is then used in addition
}

func (a Attributes) String() string {
	if a.Path != "" {
		return a.Verb + " " + a.Path
	}
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	return fmt.Sprintf("%s %s %s", a.Verb, resource, a.Name)
}

// A Decision is the result of an authorization.
type Decision struct {
	Allowed bool
	Reason  string
}

// An Authorizer authorizes operations. An error means that the decision is unknown. It must
// be safe for concurrent use.
type Authorizer interface {
	Authorize(ctx context.Context, user *User, a Attributes) (Decision, error)
}

// Any allows an operation if one of several attributes is allowed (rule sv-16). They are
// authorized in order until one is. If none is, it returns the errors that occurred.
func Any(ctx context.Context, a Authorizer, user *User, alternatives ...Attributes) (Decision, error) {
	var errs []error
	var last Decision
	for _, attributes := range alternatives {
		d, err := a.Authorize(ctx, user, attributes)
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

// AlwaysAllow allows everything.
type AlwaysAllow struct{}

// Authorize implements Authorizer.
func (AlwaysAllow) Authorize(context.Context, *User, Attributes) (Decision, error) {
	return Decision{Allowed: true}, nil
}

// withGroup returns groups with group, which it contains once.
func withGroup(groups []string, group string) []string {
	if slices.Contains(groups, group) {
		return groups
	}
	return append(slices.Clone(groups), group)
}
