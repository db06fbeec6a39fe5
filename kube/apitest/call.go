package apitest

import (
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Call is one request.
type Call struct {
	At          time.Time
	Verb        string // get, list, watch, create, update, patch, delete
	Resource    string // "pods"
	Subresource string // "status"
	Namespace   string
	Name        string
	Selector    string // field selector
	Labels      string // label selector
	UserAgent   string
	Protobuf    bool   // the response is requested in protobuf
	Body        []byte // of a patch
}

// String returns the call in one line, such as "patch pods/status prod/web".
func (c Call) String() string {
	s := c.Verb + " " + c.Resource
	if c.Subresource != "" {
		s += "/" + c.Subresource
	}
	switch {
	case c.Name != "" && c.Namespace != "":
		s += " " + c.Namespace + "/" + c.Name
	case c.Name != "" || c.Namespace != "":
		s += " " + c.Namespace + c.Name
	}
	if c.Selector != "" {
		s += " " + c.Selector
	}
	if c.Labels != "" {
		s += " " + c.Labels
	}
	return s
}

// A Fault is a failure of a request.
type Fault struct {
	// Latency delays the request.
	Latency time.Duration

	// Code is the status code of the response, with Reason and Message, if any; the request
	// has no effect. RetryAfter is the header, in seconds.
	Code       int
	Reason     metav1.StatusReason
	Message    string
	RetryAfter int

	// Refuse fails the connection. Hang does not respond until the request is canceled.
	// LoseAnswer processes the request, and then fails the connection.
	Refuse, Hang, LoseAnswer bool
}

func (f Fault) status() error {
	reason := f.Reason
	if reason == "" {
		reason = map[int]metav1.StatusReason{
			http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
			http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
			http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
			http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
			http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		}[f.Code]
	}
	status := metav1.Status{Status: metav1.StatusFailure, Code: int32(f.Code), Reason: reason, Message: f.Message}
	if status.Message == "" {
		status.Message = http.StatusText(f.Code)
	}
	if f.RetryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(f.RetryAfter)}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func (c Call) has(want []string) bool {
	resource := c.Resource
	if c.Subresource != "" {
		resource += "/" + c.Subresource
	}
	return !slices.ContainsFunc(want, func(w string) bool {
		return w != c.Verb && w != resource && w != c.Namespace && w != c.Name && w != c.Namespace+"/"+c.Name
	})
}
