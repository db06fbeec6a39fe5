package apitest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A request is a parsed Call.
type request struct {
	Call
	kind      *kind
	gvk       schema.GroupVersionKind // of the path
	rest      []string                // of the path, below the subresource
	ctx       context.Context
	user      User
	query     url.Values
	body      []byte
	mime      string // of the body
	format    format // of the response
	warnings  []string
	unchecked bool   // the schema of a custom resource only defaults and prunes: Server.Extension validates
	applied   bool   // a server-side apply, which has set the managed fields
	internal  bool   // of the garbage collector, without admission
	tracking  string // the subresource in the managed fields; "": Subresource
}

// parse parses the path, the query and the headers of a request.
func (s *Server) parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	req := &request{ctx: r.Context(), user: userOf(r), unchecked: s.Extension != nil, query: r.URL.Query(), mime: r.Header.Get("Content-Type")}
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv.Group, gv.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, errNotServed
	}
	if len(parts) > 2 && parts[0] == "namespaces" && !(gv.Group == "" && len(parts) == 3 && slices.Contains([]string{"status", "finalize"}, parts[2])) {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource, req.rest = parts[2], parts[3:]
	}
	s.mu.Lock()
	all := s.kindsLocked()
	k := all[gv.WithResource(req.Resource).GroupResource()]
	if k != nil && k.group == "events.k8s.io" {
		req.kind = all[schema.GroupResource{Resource: "events"}]
	} else {
		req.kind = k
	}
	s.mu.Unlock()
	if k == nil || !slices.Contains(k.versions, gv.Version) || k.crd != nil && !k.crd.serves(gv.Version) ||
		req.Subresource != "" && !k.has(req.Subresource) || len(req.rest) > 0 && !streams(req.Subresource) ||
		req.Namespace != "" && !k.namespaced {
		return nil, all.notServed(gv.Group, 3)
	}
	req.gvk = gv.WithKind(k.kind)
	req.Selector = req.query.Get("fieldSelector")
	req.Labels = req.query.Get("labelSelector")
	req.UserAgent = r.UserAgent()
	var err error
	if req.format, err = negotiate(r.Header.Get("Accept"), req.gvk, k.scheme != nil); err != nil && !streams(req.Subresource) {
		return nil, err
	}
	req.Protobuf = req.format.protobuf
	if req.Verb, err = req.verb(r.Method); err != nil {
		return nil, err
	}
	return req, req.check()
}

// verb returns the verb of a method.
func (r *request) verb(method string) (string, error) {
	watch := r.query.Get("watch")
	verb := ""
	switch method {
	case http.MethodGet:
		verb = "get"
	case http.MethodPost:
		verb = "create"
	case http.MethodPut:
		verb = "update"
	case http.MethodPatch:
		verb = "patch"
	case http.MethodDelete:
		verb = "delete"
	}
	collection := r.Name == ""
	switch {
	case streams(r.Subresource):
		verb = "connect"
		if r.Subresource == "log" {
			verb = "get"
		}
	case verb == "get" && r.Subresource == "" && (watch == "true" || watch == "1"):
		verb = "watch"
	case verb == "get" && collection:
		verb = "list"
	case verb == "delete" && collection:
		verb = "deletecollection"
	}
	ok := verb != ""
	switch {
	case r.kind.review:
		ok = verb == "create" && collection
	case r.Subresource == "" && verb == "create":
		ok = collection
	case collection && verb == "deletecollection":
		ok = r.kind.deletesCollections()
	case collection:
		ok = ok && (verb == "list" || verb == "watch" || verb == "deletecollection")
	case r.Subresource == "eviction", r.Subresource == "binding", r.Subresource == "token":
		ok = verb == "create"
	case r.Subresource == "finalize":
		ok = verb == "update"
	case r.Subresource != "" && !streams(r.Subresource):
		ok = verb == "get" || verb == "update" || verb == "patch"
	}
	if !ok {
		return "", errMethod
	}
	return verb, nil
}

// errMethod is the answer to a method that a resource does not have.
var errMethod = apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, "", schema.GroupResource{}, "", "", 0, false)

// streams reports whether a subresource is answered by Server.Connect.
func streams(subresource string) bool {
	switch subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return true
	}
	return false
}

// check rejects parameters with values that the server does not know.
func (r *request) check() error {
	verb := ""
	switch r.Verb {
	case "create":
		verb = "Create"
	case "update":
		verb = "Update"
	case "patch":
		verb = "Patch"
	case "delete", "deletecollection":
		verb = "Delete"
	default:
		return nil
	}
	var errs field.ErrorList
	for _, v := range r.query["dryRun"] {
		if v != metav1.DryRunAll {
			errs = append(errs, field.NotSupported(field.NewPath("dryRun"), r.query["dryRun"], []string{metav1.DryRunAll}))
			break
		}
	}
	switch v := r.query.Get("fieldValidation"); v {
	case "", metav1.FieldValidationIgnore, metav1.FieldValidationStrict, metav1.FieldValidationWarn:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("fieldValidation"), v, []string{"", "Ignore", "Strict", "Warn"}))
	}
	if v := r.query.Get("fieldManager"); len(v) > 128 {
		errs = append(errs, field.TooLong(field.NewPath("fieldManager"), v, 128))
	}
	if r.Verb == "patch" {
		apply := types.PatchType(r.bodyType()) == types.ApplyYAMLPatchType
		switch {
		case apply && r.query.Get("fieldManager") == "":
			errs = append(errs, field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
		case !apply && r.query.Get("force") != "":
			errs = append(errs, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
		}
	}
	if len(errs) > 0 {
		return invalidOptions(verb, errs...)
	}
	return nil
}

func (r *request) dryRun() bool { return len(r.query["dryRun"]) > 0 }

// errNotServed is the answer to a path of no group that is served, as plain text.
var errNotServed = errors.New("404 page not found")

// notServed is the answer to a path below a group: parts is the length of its path.
func (k kinds) notServed(group string, parts int) error {
	for _, one := range k {
		if one.group == group && parts > 2 {
			return &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
				Message: "the server could not find the requested resource", Details: &metav1.StatusDetails{},
			}}
		}
	}
	return errNotServed
}
