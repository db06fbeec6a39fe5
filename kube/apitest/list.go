package apitest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A position is the content of a token of the parameter continue.
type position struct {
	Version   int64  `json:"rv"`
	Namespace string `json:"ns,omitempty"`
	Name      string `json:"name"`
}

// latest is the Version of a token that continues an expired list with the present objects.
const latest = -1

// expiredToken is kube-apiserver's message for a token whose version is compacted.
const expiredToken = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the " +
	"continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided " +
	"token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned " +
	"and now may show up in the list."

func (p position) token() string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err) // it has plain fields
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// listing are the parameters of a list.
type listing struct {
	matcher *matcher
	version int64     // "" and 0: any
	exact   bool      // the state at version
	after   *position // of the last object of the previous page
	limit   int64
}

// listing parses the parameters of a list.
func (r *request) listing() (listing, error) {
	var l listing
	var err error
	if l.matcher, err = r.matcher(); err != nil {
		return l, err
	}
	get := r.query.Get
	version, match := get("resourceVersion"), get("resourceVersionMatch")
	if l.version, err = parseVersion(version); err != nil {
		return l, err
	}
	if limit := get("limit"); limit != "" {
		if l.limit, err = strconv.ParseInt(limit, 10, 64); err != nil {
			return l, apierrors.NewBadRequest(err.Error())
		}
	}
	token := get("continue")
	var errs field.ErrorList
	at := field.NewPath("resourceVersionMatch")
	switch {
	case match != "" && version == "":
		errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
	case match != "" && token != "":
		errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
	case match == string(metav1.ResourceVersionMatchExact) && l.version == 0:
		errs = append(errs, field.Forbidden(at, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
	case match != "" && match != string(metav1.ResourceVersionMatchExact) && match != string(metav1.ResourceVersionMatchNotOlderThan):
		errs = append(errs, field.NotSupported(at, match, []string{"Exact", "NotOlderThan", ""}))
	}
	if get("sendInitialEvents") != "" {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	switch {
	case len(errs) > 0:
		return l, invalidOptions("List", errs...)
	case token != "" && version != "" && version != "0":
		return l, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	l.exact = match == string(metav1.ResourceVersionMatchExact) || l.limit > 0 && l.version > 0 && match == ""
	if token != "" {
		l.after = new(position)
		data, err := base64.RawURLEncoding.DecodeString(token)
		if err != nil || json.Unmarshal(data, l.after) != nil || l.after.Version <= 0 && l.after.Version != latest {
			return l, apierrors.NewBadRequest("continue key is not valid: it was not issued by this server")
		}
		if l.after.Version != latest {
			l.version, l.exact = l.after.Version, true
		}
	}
	return l, nil
}

// invalidOptions is the answer to parameters that contradict each other or are unknown.
func invalidOptions(verb string, errs ...*field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: verb + "Options"}, "", errs)
}

func parseVersion(version string) (int64, error) {
	if version == "" {
		return 0, nil
	}
	v, err := strconv.ParseInt(version, 10, 64)
	if err != nil || v < 0 {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("Invalid value: %q: resourceVersion must be a non-negative integer", version))
	}
	return v, nil
}

// tooLarge is the answer to a request for a version that does not exist yet.
func tooLarge(requested, current int64) error {
	err := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", requested, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}
	return err
}

// page selects the items of a list and returns its metadata.
func (s *Server) page(r *request, l listing) ([]*item, metav1.ListMeta, error) {
	s.mu.Lock()
	current := s.table.version
	o := s.table.of(r.kind)
	items, ok, version := o.in(r.Namespace), true, current
	if l.version > current {
		s.mu.Unlock()
		return nil, metav1.ListMeta{}, tooLarge(l.version, current)
	}
	if l.exact {
		version = l.version
		items, ok = o.at(version, r.Namespace)
	}
	var found []*item
	if ok {
		found = sorted(items, l.matcher)
	}
	s.mu.Unlock()
	if !ok && l.after != nil {
		err := apierrors.NewResourceExpired(expiredToken)
		err.ErrStatus.Continue = position{latest, l.after.Namespace, l.after.Name}.token()
		return nil, metav1.ListMeta{}, err
	}
	if !ok {
		return nil, metav1.ListMeta{}, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	if l.after != nil {
		last := key{l.after.Namespace, l.after.Name}
		n, exact := slices.BinarySearchFunc(found, last, func(i *item, k key) int { return keyOf(i.object).compare(k) })
		if exact {
			n++
		}
		found = found[n:]
	}
	meta := metav1.ListMeta{ResourceVersion: strconv.FormatInt(version, 10)}
	if l.limit > 0 && int64(len(found)) > l.limit {
		remaining := int64(len(found)) - l.limit
		found = found[:l.limit]
		last := keyOf(found[len(found)-1].object)
		meta.Continue = position{version, last.namespace, last.name}.token()
		if l.matcher.all {
			meta.RemainingItemCount = &remaining
		}
	}
	return found, meta, nil
}

// serveList writes a list.
func (s *Server) serveList(r *request) ([]byte, error) {
	l, err := r.listing()
	if err != nil {
		return nil, err
	}
	found, meta, err := s.page(r, l)
	if err != nil {
		return nil, err
	}
	switch {
	case r.format.as == "Table":
		objects := make([]object, len(found))
		for i, one := range found {
			objects[i] = one.object
		}
		t, err := s.tabulate(r.kind, objects, nil, r.gvk)
		if err != nil {
			return nil, err
		}
		t.ListMeta = meta
		return encode(t, false)
	case r.format.protobuf || r.format.as != "":
		list, err := s.list(r, found, meta)
		if err != nil {
			return nil, err
		}
		return encode(list, r.format.protobuf)
	}
	return s.joined(r, found, meta)
}

// joined assembles a JSON list of the cached forms of its items.
func (s *Server) joined(r *request, found []*item, meta metav1.ListMeta) ([]byte, error) {
	head, err := json.Marshal(struct {
		Kind       string          `json:"kind"`
		APIVersion string          `json:"apiVersion"`
		Metadata   metav1.ListMeta `json:"metadata"`
	}{r.gvk.Kind + "List", r.gvk.GroupVersion().String(), meta})
	if err != nil {
		return nil, err
	}
	buf := bytes.NewBuffer(head[:len(head)-1])
	buf.WriteString(`,"items":[`)
	for n, i := range found {
		data, err := s.listed(i, r.format)
		if err != nil {
			return nil, err
		}
		if n > 0 {
			buf.WriteByte(',')
		}
		buf.Write(bytes.TrimSpace(data))
	}
	buf.WriteString("]}\n")
	return buf.Bytes(), nil
}

// list returns the list as an object.
func (s *Server) list(r *request, found []*item, listMeta metav1.ListMeta) (runtime.Object, error) {
	if r.format.as != "" {
		list := &metav1.PartialObjectMetadataList{
			TypeMeta: metav1.TypeMeta{Kind: "PartialObjectMetadataList", APIVersion: "meta.k8s.io/v1"}, ListMeta: listMeta, Items: []metav1.PartialObjectMetadata{},
		}
		for _, i := range found {
			list.Items = append(list.Items, *partial(i.object))
		}
		return list, nil
	}
	gvk := r.gvk.GroupVersion().WithKind(r.gvk.Kind + "List")
	list, err := r.kind.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	list.GetObjectKind().SetGroupVersionKind(gvk)
	target, err := meta.GetItemsPtr(list)
	if err != nil {
		return nil, err
	}
	items := reflect.ValueOf(target).Elem()
	items.Set(reflect.MakeSlice(items.Type(), 0, len(found)))
	for _, i := range found {
		o, err := r.kind.convert(i.object, r.gvk)
		if err != nil {
			return nil, err
		}
		o = untyped(o)
		value := reflect.ValueOf(o)
		if items.Type().Elem().Kind() != reflect.Pointer {
			value = value.Elem()
		}
		items.Set(reflect.Append(items, value))
	}
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	accessor.SetResourceVersion(listMeta.ResourceVersion)
	accessor.SetContinue(listMeta.Continue)
	accessor.SetRemainingItemCount(listMeta.RemainingItemCount)
	return list, nil
}

// get returns the item of a request.
func (s *Server) get(r *request) (*item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.table.of(r.kind).all[key{r.Namespace, r.Name}]
	if i == nil {
		return nil, apierrors.NewNotFound(r.kind.resource(), r.Name)
	}
	if want, err := parseVersion(r.query.Get("resourceVersion")); err != nil {
		return nil, err
	} else if want > s.table.version && r.Verb == "get" {
		return nil, tooLarge(want, s.table.version)
	}
	return i, nil
}

// partial returns the metadata of an object.
func partial(o object) *metav1.PartialObjectMetadata {
	p := meta.AsPartialObjectMetadata(o)
	p.TypeMeta = metav1.TypeMeta{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1"}
	return p
}
