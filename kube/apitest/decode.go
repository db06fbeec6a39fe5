package apitest

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// bodyType returns the media type of the body, without parameters.
func (r *request) bodyType() string {
	kind, _, err := mime.ParseMediaType(r.mime)
	if err != nil {
		return r.mime
	}
	return kind
}

// decode decodes the body into an object of gvk. A body that names another kind is a bad
// request.
func (r *request) decode(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (runtime.Object, error) {
	switch r.bodyType() {
	case protobufType:
		return r.decodeProtobuf(scheme, gvk)
	case "application/yaml":
		data, err := yaml.YAMLToJSON(r.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		r.body = data
	case "", "application/json", "*/*":
	default:
		return nil, r.unsupportedMedia("application/json, application/yaml, " + protobufType)
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.body, &meta); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", gvk.Kind, err))
	}
	if r.kind.crd != nil && meta.Kind == "" {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)",
			gvk.Kind, runtime.NewMissingKindErr(string(r.body)), r.beginning()))
	}
	if meta.Kind == "" && meta.APIVersion == "" {
		meta.APIVersion, meta.Kind = gvk.ToAPIVersionAndKind()
	}
	if err := sameKind(meta, gvk); err != nil {
		return nil, err
	}
	if scheme == nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		strict, err := kjson.UnmarshalStrict(r.body, &u.Object)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		u.SetGroupVersionKind(gvk)
		return u, r.unknownFields(strict)
	}
	o, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	strict, err := kjson.UnmarshalStrict(r.body, o)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version, gvk.Kind, err))
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, r.unknownFields(strict)
}

func (r *request) decodeProtobuf(scheme *runtime.Scheme, gvk schema.GroupVersionKind) (runtime.Object, error) {
	if scheme == nil {
		return nil, r.unsupportedMedia("application/json, application/yaml")
	}
	o, actual, err := protobuf.NewSerializer(scheme, scheme).Decode(r.body, &gvk, nil)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	meta := metav1.TypeMeta{}
	meta.APIVersion, meta.Kind = actual.ToAPIVersionAndKind()
	if err := sameKind(meta, gvk); err != nil {
		return nil, err
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o, nil
}

// beginning returns the beginning of the body as kube-apiserver quotes it.
func (r *request) beginning() string {
	if limit := 30; len(r.body) > limit {
		return string(r.body[:limit]) + " ..."
	}
	return string(r.body)
}

func sameKind(meta metav1.TypeMeta, gvk schema.GroupVersionKind) error {
	version, _ := gvk.ToAPIVersionAndKind()
	switch {
	case meta.APIVersion != version && meta.Kind == gvk.Kind:
		return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", meta.APIVersion, version))
	case meta.APIVersion == version && meta.Kind == gvk.Kind:
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s): kind %q, expected %q",
		meta.APIVersion, version, meta.Kind, gvk.Kind))
}

// unknownFields handles fields that are unknown or duplicate as the parameter
// fieldValidation demands.
func (r *request) unknownFields(found []error) error {
	if len(found) == 0 {
		return nil
	}
	switch r.fieldValidation() {
	case metav1.FieldValidationStrict:
		err := runtime.NewStrictDecodingError(found)
		return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", r.gvk.Kind, r.gvk.Version, r.gvk.Kind, err))
	case metav1.FieldValidationWarn:
		for _, err := range found {
			r.warn(err.Error())
		}
	}
	return nil
}

func (r *request) fieldValidation() string {
	if v := r.query.Get("fieldValidation"); v != "" {
		return v
	}
	return metav1.FieldValidationWarn
}

// warn adds a warning to the response.
func (r *request) warn(text string) {
	r.warnings = append(r.warnings, fmt.Sprintf("299 - %q", strings.ToValidUTF8(text, "")))
}

func (r *request) unsupportedMedia(supported string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: %s", supported),
	}}
}

// decodeOptions decodes the body of a delete, which may be empty.
func (r *request) decodeOptions() (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	if len(bytes.TrimSpace(r.body)) == 0 {
		return opts, nil
	}
	if r.bodyType() == protobufType {
		var raw runtime.Unknown
		if len(r.body) < 4 || raw.Unmarshal(r.body[4:]) != nil || opts.Unmarshal(raw.Raw) != nil {
			return nil, apierrors.NewBadRequest("the body is not a DeleteOptions")
		}
		return opts, nil
	}
	data, err := yaml.YAMLToJSON(r.body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, opts)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return opts, nil
}
