package apitest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// A kind describes a resource.
type kind struct {
	version    schema.GroupVersion // in which discovery names it
	kind       string
	namespaced bool
	status     bool     // has the subresource status
	creates    []string // subresources to which objects are posted
}

var core = schema.GroupVersion{Version: "v1"}

func inGroup(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: "v1"}
}

// kinds are the resources that are served.
var kinds = map[string]kind{
	"pods":                       {core, "Pod", true, true, []string{"binding"}},
	"services":                   {core, "Service", true, true, nil},
	"secrets":                    {core, "Secret", true, false, nil},
	"configmaps":                 {core, "ConfigMap", true, false, nil},
	"events":                     {core, "Event", true, false, nil},
	"serviceaccounts":            {core, "ServiceAccount", true, false, []string{"token"}},
	"persistentvolumeclaims":     {core, "PersistentVolumeClaim", true, true, nil},
	"persistentvolumes":          {core, "PersistentVolume", false, true, nil},
	"nodes":                      {core, "Node", false, true, nil},
	"namespaces":                 {core, "Namespace", false, true, nil},
	"leases":                     {inGroup("coordination.k8s.io"), "Lease", true, false, nil},
	"runtimeclasses":             {inGroup("node.k8s.io"), "RuntimeClass", false, false, nil},
	"csidrivers":                 {inGroup("storage.k8s.io"), "CSIDriver", false, false, nil},
	"csinodes":                   {inGroup("storage.k8s.io"), "CSINode", false, false, nil},
	"clustertrustbundles":        {schema.GroupVersion{Group: "certificates.k8s.io", Version: "v1beta1"}, "ClusterTrustBundle", false, false, nil},
	"certificatesigningrequests": {inGroup("certificates.k8s.io"), "CertificateSigningRequest", false, true, nil},
	"tokenreviews":               {inGroup("authentication.k8s.io"), "TokenReview", false, false, nil},
	"subjectaccessreviews":       {inGroup("authorization.k8s.io"), "SubjectAccessReview", false, false, nil},
}

// serves reports whether the subresource exists.
func (k kind) serves(subresource string) bool {
	return subresource == "" || subresource == "status" && k.status || slices.Contains(k.creates, subresource)
}

// A request is a parsed Call.
type request struct {
	Call
	gvr   schema.GroupVersionResource
	gvk   schema.GroupVersionKind
	query url.Values
	body  []byte
	mime  string // of the body
}

// parse parses the path and the query of a request.
func parse(r *http.Request) (*request, error) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	req := &request{query: r.URL.Query(), mime: r.Header.Get("Content-Type")}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		req.gvr.Version, parts = parts[1], parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		req.gvr.Group, req.gvr.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return nil, notServed(r.URL.Path)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		req.Namespace, parts = parts[1], parts[2:]
	}
	req.Resource = parts[0]
	if len(parts) > 1 {
		req.Name = parts[1]
	}
	if len(parts) > 2 {
		req.Subresource = parts[2]
	}
	kind, ok := kinds[req.Resource]
	ok = ok && kind.serves(req.Subresource) && len(parts) <= 3
	req.gvr.Resource = req.Resource
	req.gvk = req.gvr.GroupVersion().WithKind(kind.kind)
	if !ok || !scheme.Scheme.Recognizes(req.gvk) {
		return nil, notServed(r.URL.Path)
	}
	req.Selector = req.query.Get("fieldSelector")
	req.Labels = req.query.Get("labelSelector")
	req.UserAgent = r.UserAgent()
	req.Protobuf = strings.Contains(r.Header.Get("Accept"), "protobuf")
	switch r.Method {
	case http.MethodGet:
		req.Verb = "get"
		if req.Name == "" {
			req.Verb = "list"
		}
		if watch := req.query.Get("watch"); watch == "true" || watch == "1" {
			req.Verb = "watch"
		}
	case http.MethodPost:
		req.Verb = "create"
	case http.MethodPut:
		req.Verb = "update"
	case http.MethodPatch:
		req.Verb = "patch"
	case http.MethodDelete:
		req.Verb = "delete"
	default:
		return nil, apierrors.NewMethodNotSupported(req.gvr.GroupResource(), r.Method)
	}
	if req.Name == "" && (req.Verb == "update" || req.Verb == "patch" || req.Verb == "delete") {
		return nil, apierrors.NewMethodNotSupported(req.gvr.GroupResource(), req.Verb) // of a collection
	}
	return req, req.unsupported()
}

// unsupported returns a bad request for a parameter that would change the answer and
// is not implemented.
func (r *request) unsupported() error {
	if r.query.Get("continue") != "" || r.query.Get("resourceVersionMatch") == "Exact" || len(r.query["dryRun"]) > 0 {
		return apierrors.NewBadRequest("apitest: the parameters continue, dryRun and resourceVersionMatch=Exact are not supported")
	}
	return nil
}

func notServed(path string) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "", schema.GroupResource{}, "", fmt.Sprintf("the server could not find the requested resource (%s)", path), 0, true)
}

// decode decodes the body, in JSON or protobuf.
func (r *request) decode(into runtime.Object) (runtime.Object, error) {
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.body, nil, into)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return object, nil
}

// encoding returns the encoding of the response.
func (r *request) encoding() runtime.SerializerInfo {
	mime := runtime.ContentTypeJSON
	if r.Protobuf {
		mime = runtime.ContentTypeProtobuf
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), mime)
	return info
}

// writeObject writes a response.
func writeObject(w http.ResponseWriter, r *request, object runtime.Object, code int) {
	info := r.encoding()
	object = object.DeepCopyObject() // an encoder writes the kind into it
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, r.gvr.GroupVersion()), object)
	if err != nil {
		writeError(w, err)
		return
	}
	w.Header().Set("Content-Type", info.MediaType)
	w.WriteHeader(code)
	_, _ = w.Write(data)
}

// writeError writes a Status, as JSON, which every client supports.
func writeError(w http.ResponseWriter, err error) {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.Kind, status.APIVersion = "Status", "v1"
	data, err := runtime.Encode(scheme.Codecs.LegacyCodec(schema.GroupVersion{Version: "v1"}), &status)
	if err != nil {
		panic(err) // a Status can be written
	}
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(int(status.Code))
	_, _ = w.Write(data)
}
