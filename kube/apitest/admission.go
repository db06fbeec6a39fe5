package apitest

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Admission decides on writes as the admission chain of kube-apiserver does: in two steps,
// around the validation by the server. Its methods are called concurrently, and again if a
// write conflicts with another. An error rejects the write: as it is if it is an API status,
// else as forbidden.
type Admission interface {
	// Mutate may change a.Next, which is nil if the object is deleted.
	Mutate(ctx context.Context, a *Attempt) error

	// Validate must not change a.Next.
	Validate(ctx context.Context, a *Attempt) error
}

// An Attempt is a write that an [Admission] decides on.
type Attempt struct {
	Call
	Kind    schema.GroupVersionKind // of the path of the request
	DryRun  bool
	User    User
	Options runtime.Object // *CreateOptions, *UpdateOptions or *DeleteOptions of metav1

	// Definition is the CustomResourceDefinition of the resource, nil for others. It must
	// not be changed.
	Definition runtime.Object

	// Old is the stored object, nil if it is created, and Next its replacement, nil if it
	// is deleted, both in the version of the request. Old must not be changed.
	Old, Next runtime.Object

	// Warn adds a warning to the response.
	Warn func(text string)
}

// A User is the user of a request.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// userKey is the key of a context's User.
type userKey struct{}

// WithUser returns a context whose requests are made by a user: for a handler that
// authenticates requests before it passes them to a [Server].
func WithUser(ctx context.Context, u User) context.Context {
	return context.WithValue(ctx, userKey{}, u)
}

// admin is the user of requests without a client certificate.
var admin = User{Name: "system:admin", Groups: []string{"system:masters", "system:authenticated"}}

// userOf returns the user of the context, the user that a request impersonates, or the one
// that its client certificate names.
func userOf(r *http.Request) User {
	if u, ok := r.Context().Value(userKey{}).(User); ok {
		return u
	}
	if name := r.Header.Get("Impersonate-User"); name != "" {
		return User{Name: name, Groups: append(r.Header.Values("Impersonate-Group"), "system:authenticated")}
	}
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
		subject := r.TLS.VerifiedChains[0][0].Subject
		return User{Name: subject.CommonName, Groups: append(subject.Organization, "system:authenticated")}
	}
	return admin
}

// attempt returns the write of a request. old is an object of the stored version.
func (r *request) attempt(old, next object) (*Attempt, error) {
	a := &Attempt{
		Call: r.Call, Kind: r.gvk, DryRun: r.dryRun(), User: r.user,
		Warn: r.warn,
	}
	if old != nil {
		converted, err := r.kind.convert(old, r.gvk)
		if err != nil {
			return nil, err
		}
		a.Old = public(converted)
	}
	if next != nil {
		a.Next = next
	}
	if r.kind.crd != nil {
		a.Definition = r.kind.crd.source
	}
	manager, dry := r.query.Get("fieldManager"), r.query["dryRun"]
	switch {
	case next == nil:
		options := &metav1.DeleteOptions{DryRun: dry}
		options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("DeleteOptions"))
		a.Options = options
	case old == nil:
		options := &metav1.CreateOptions{DryRun: dry, FieldManager: manager, FieldValidation: r.query.Get("fieldValidation")}
		options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("CreateOptions"))
		a.Options = options
	default:
		options := &metav1.UpdateOptions{DryRun: dry, FieldManager: manager, FieldValidation: r.query.Get("fieldValidation")}
		options.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("UpdateOptions"))
		a.Options = options
	}
	return a, nil
}

// admitted reports whether Server.Admission decides on a request: not on the writes of the
// garbage collector, and not on bindings and evictions.
func (s *Server) admitted(r *request) bool {
	return s.Admission != nil && !r.internal && r.Subresource != "binding" && r.Subresource != "eviction"
}

// mutate calls the first step of Server.Admission.
func (s *Server) mutate(r *request, old, next object) error {
	if !s.admitted(r) {
		return nil
	}
	a, err := r.attempt(old, next)
	if err != nil {
		return err
	}
	if err := s.Admission.Mutate(r.ctx, a); err != nil {
		return r.rejection(err)
	}
	if next == nil {
		return nil
	}
	if !s.Raw && r.Subresource == "" {
		s.complete(next)
	}
	return r.custom(next) // prunes and defaults what was changed
}

// validated calls the second step of Server.Admission, with the object as it is stored.
func (s *Server) validated(r *request, old, next object) error {
	if !s.admitted(r) {
		return nil
	}
	if next != nil {
		converted, err := r.kind.convert(next, r.gvk)
		if err != nil {
			return err
		}
		next = public(converted).(object)
	}
	a, err := r.attempt(old, next)
	if err != nil {
		return err
	}
	return r.rejection(s.Admission.Validate(r.ctx, a))
}

// mutateNew calls the first step for a new object, whose generated name is not known yet.
func (s *Server) mutateNew(r *request, next object, generated bool) error {
	name := next.GetName()
	if generated && s.admitted(r) {
		next.SetName("")
		defer func() {
			if next.GetName() == "" {
				next.SetName(name)
			}
		}()
	}
	return s.mutate(r, nil, next)
}
