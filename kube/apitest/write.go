package apitest

import (
	"errors"
	"fmt"
	"net/http"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// An answer is a successful response.
type answer struct {
	item   *item          // a stored object, in the kind of the request
	object runtime.Object // another object; nil if item is set
	data   []byte         // of a list; nil if one of the others is set
	code   int
}

// do executes a request that is not a watch.
func (s *Server) do(r *request) (answer, error) {
	switch r.Verb {
	case "list":
		data, err := s.serveList(r)
		return answer{data: data, code: http.StatusOK}, err
	case "get":
		i, err := s.get(r)
		if err != nil {
			return answer{}, err
		}
		if r.Subresource == "scale" {
			return s.getScale(r, i)
		}
		return answer{item: i, code: http.StatusOK}, nil
	case "create":
		switch r.Subresource {
		case "":
			return s.create(r)
		case "token":
			return s.token(r)
		case "binding":
			return s.bind(r)
		case "eviction":
			return s.evict(r)
		}
	case "update":
		if r.Subresource == "scale" {
			return s.updateScale(r)
		}
		return s.update(r)
	case "patch":
		if r.Subresource == "scale" {
			return s.patchScale(r)
		}
		return s.patch(r)
	case "delete":
		return s.delete(r)
	case "deletecollection":
		return s.deleteCollection(r)
	}
	return answer{}, apierrors.NewMethodNotSupported(r.kind.resource(), r.Verb)
}

// decodeObject decodes the body as an object of the kind of the request.
func (r *request) decodeObject() (object, error) {
	decoded, err := r.decode(r.kind.scheme, r.gvk)
	if err != nil {
		return nil, err
	}
	o, ok := decoded.(object)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%T has no metadata", decoded))
	}
	return o, r.custom(o)
}

// custom applies the schema of a custom resource.
func (r *request) custom(o object) error {
	if r.kind.crd == nil {
		return nil
	}
	return r.kind.crd.apply(r, o)
}

func (s *Server) create(r *request) (answer, error) {
	if r.kind.namespaced && r.Namespace == "" {
		return answer{}, apierrors.NewMethodNotSupported(r.kind.resource(), "create")
	}
	one, err := r.decodeObject()
	if err != nil {
		return answer{}, err
	}
	if _, ok := one.(*v1.Binding); ok {
		return s.bindNamed(r, one)
	}
	if r.kind.review {
		return s.review(r, one)
	}
	return s.createObject(r, one)
}

// createObject stores a decoded object in the version of the request.
func (s *Server) createObject(r *request, one object) (answer, error) {
	if err := r.place(one); err != nil {
		return answer{}, err
	}
	if one.GetResourceVersion() != "" {
		return answer{}, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "resourceVersion should not be set on objects to be created",
		}}
	}
	applied := one.GetManagedFields() != nil && r.applied
	generated := one.GetName() == "" && one.GetGenerateName() != ""
	if generated {
		one.SetName(s.generate(one.GetGenerateName()))
	}
	one.SetUID("")
	if r.kind.plural == "jobs" { // its selector contains its UID
		one.SetUID(s.uid())
	}
	one.SetCreationTimestamp(now())
	one.SetDeletionTimestamp(nil)
	one.SetDeletionGracePeriodSeconds(nil)
	one.SetSelfLink("")
	one.SetGeneration(0)
	if r.kind.generation {
		one.SetGeneration(1)
	}
	s.initialize(r.kind, one)
	if err := s.admit(r, nil, one); err != nil {
		return answer{}, err
	}
	if err := s.mutateNew(r, one, generated); err != nil {
		return answer{}, err
	}
	if err := s.prepare(r, nil, one); err != nil {
		return answer{}, err
	}
	next, err := r.kind.convert(one, r.kind.stored())
	if err != nil {
		return answer{}, err
	}
	if err := s.validateCreate(r, next); err != nil {
		return answer{}, err
	}
	if !applied {
		if next, err = s.track(r, nil, next); err != nil {
			return answer{}, err
		}
	}
	if err := s.validated(r, nil, next); err != nil {
		return answer{}, err
	}
	shareSchemas(r.kind, nil, next)
	s.mu.Lock()
	if err := s.admitNamespaceLocked(r, next); err != nil {
		s.mu.Unlock()
		return answer{}, err
	}
	s.nameEventLocked(r, next)
	if s.table.of(r.kind).all[keyOf(next)] != nil {
		s.mu.Unlock()
		return answer{}, apierrors.NewAlreadyExists(r.kind.resource(), next.GetName())
	}
	if r.dryRun() {
		next.SetUID(s.table.newUID())
		s.mu.Unlock()
		return answer{object: next, code: http.StatusCreated}, nil
	}
	stored := s.putLocked(r.kind, next)
	s.mu.Unlock()
	s.stored(r.kind, stored.object)
	return answer{item: stored, code: http.StatusCreated}, nil
}

// place checks the namespace of the object, which may be empty, and its name, if the
// request has one.
func (r *request) place(one object) error {
	switch namespace := one.GetNamespace(); {
	case namespace == r.Namespace:
	case namespace == "":
		one.SetNamespace(r.Namespace)
	case r.Namespace == "":
		one.SetNamespace("")
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if r.Name == "" {
		return nil
	}
	switch name := one.GetName(); name {
	case r.Name:
		return nil
	case "":
		return apierrors.NewBadRequest("name must be provided")
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, r.Name))
	}
}

// suffixes are the characters of generated names.
const suffixes = "bcdfghjklmnpqrstvwxz2456789"

// generate returns a name that this server has not generated before. The names are the
// same in each run.
func (s *Server) generate(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.names++
	suffix := make([]byte, 5)
	n := uint64(s.table.names) * 0x9E3779B97F4A7C15 >> 40 // 24 bits: 27^5 is 2^23.8
	for i := range suffix {
		suffix[i] = suffixes[n%uint64(len(suffixes))]
		n /= uint64(len(suffixes))
	}
	if limit := 63 - len(suffix); len(prefix) > limit {
		prefix = prefix[:limit]
	}
	return prefix + string(suffix)
}

// initialize sets the status of a new object.
func (s *Server) initialize(k *kind, one object) {
	if k.has("status") && k.plural != "nodes" { // nodes register with their status
		zeroStatus(one)
	}
	switch o := one.(type) {
	case *v1.Pod:
		o.Status.Phase = v1.PodPending
		o.Status.QOSClass = qos(o)
	case *v1.Namespace:
		o.Status.Phase = v1.NamespaceActive
		o.Spec.Finalizers = []v1.FinalizerName{v1.FinalizerKubernetes}
		if o.Labels[v1.LabelMetadataName] != o.Name && o.Name != "" {
			if o.Labels == nil {
				o.Labels = map[string]string{}
			}
			o.Labels[v1.LabelMetadataName] = o.Name
		}
	case *v1.PersistentVolume:
		o.Status.Phase = v1.VolumePending
	case *v1.PersistentVolumeClaim:
		o.Status.Phase = v1.ClaimPending
	}
	if !s.Raw {
		s.complete(one)
		if pod, ok := one.(*v1.Pod); ok && pod.Spec.PriorityClassName == "" {
			set(&pod.Spec.Priority, 0)
			set(&pod.Spec.PreemptionPolicy, v1.PreemptLowerPriority)
		}
	}
}

// admit calls the admission of the test.
func (s *Server) admit(r *request, old, one object) error {
	if s.Admit == nil || r.internal {
		return nil
	}
	var before, after runtime.Object
	if old != nil {
		before = public(old)
	}
	if one != nil {
		after = one
	}
	return r.rejection(s.Admit(r.Call, before, after))
}

// rejection returns the response to a write that admission rejects with err, which may be nil.
func (r *request) rejection(err error) error {
	if err == nil {
		return nil
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return status
	}
	return apierrors.NewForbidden(r.kind.resource(), r.Name, err)
}

func (s *Server) update(r *request) (answer, error) {
	one, err := r.decodeObject()
	if err != nil {
		return answer{}, err
	}
	if err := r.place(one); err != nil {
		return answer{}, err
	}
	done, err := s.change(r, func(object) (object, error) {
		if one.GetResourceVersion() != "" {
			return one, nil // edited once: a second attempt conflicts
		}
		return one.DeepCopyObject().(object), nil
	})
	if apierrors.IsNotFound(err) && r.Subresource == "" && r.kind.createdByUpdate() && one.GetUID() == "" && one.GetResourceVersion() == "" {
		return s.createObject(r, one)
	}
	return done, err
}

// createdByUpdate reports whether an update of an object that does not exist creates it.
func (k *kind) createdByUpdate() bool {
	switch k.plural {
	case "leases", "events", "endpoints", "limitranges", "resourcequotas", "runtimeclasses",
		"roles", "rolebindings", "clusterroles", "clusterrolebindings":
		return !k.custom
	}
	return false
}

// change replaces the object of the request by the result of edit, which receives the
// present object in the version of the request and must not change it. edit is called
// again if the object changes meanwhile.
func (s *Server) change(r *request, edit func(current object) (object, error)) (answer, error) {
	for {
		was, err := s.get(r)
		if err != nil {
			return answer{}, err
		}
		current, err := r.kind.convert(was.object, r.gvk)
		if err != nil {
			return answer{}, err
		}
		edited, err := edit(current)
		if err != nil {
			return answer{}, err
		}
		next, err := s.replace(r, was.object, current, edited)
		if err != nil {
			return answer{}, err
		}
		if same(was.object, next) {
			return answer{item: was, code: http.StatusOK}, nil
		}
		if r.dryRun() {
			return answer{object: next, code: http.StatusOK}, nil
		}
		shareSchemas(r.kind, was, next)
		if done := s.commit(r.kind, was, next); done != nil {
			return answer{item: done, code: http.StatusOK}, nil
		}
	}
}

// commit stores next in place of was; nil if was is no longer stored. An object that waits
// for its last finalizer is removed.
func (s *Server) commit(k *kind, was *item, next object) *item {
	s.mu.Lock()
	if s.table.of(k).all[keyOf(was.object)] != was {
		s.mu.Unlock()
		return nil
	}
	grace := next.GetDeletionGracePeriodSeconds()
	if next.GetDeletionTimestamp() != nil && len(next.GetFinalizers()) == 0 && (grace == nil || *grace == 0) && !finalizing(next) {
		version := s.removeLocked(was)
		s.mu.Unlock()
		s.removed(k, next)
		return &item{kind: k, object: next, version: version}
	}
	done := s.putLocked(k, next)
	s.mu.Unlock()
	s.stored(k, done.object)
	return done
}

// finalizing reports whether a namespace still has the finalizers of its spec.
func finalizing(o object) bool {
	ns, ok := o.(*v1.Namespace)
	return ok && len(ns.Spec.Finalizers) > 0
}

// replace returns the object to store in place of was, which is current in the version of
// the request, for an update by edited.
func (s *Server) replace(r *request, was, current, edited object) (object, error) {
	if uid := edited.GetUID(); uid != "" && uid != was.GetUID() {
		return nil, conflict(r, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, was.GetUID()))
	}
	if version := edited.GetResourceVersion(); version != "" && version != "0" && version != was.GetResourceVersion() {
		return nil, conflict(r, "the object has been modified; please apply your changes to the latest version and try again")
	} else if version == "" && r.Verb == "update" && !r.kind.unconditional() {
		resource := schema.GroupKind{Group: r.kind.group, Kind: r.kind.plural} // as in kube-apiserver
		return nil, apierrors.NewInvalid(resource, r.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	edited = r.separate(current, edited)
	edited.SetUID(was.GetUID())
	edited.SetResourceVersion(was.GetResourceVersion())
	edited.SetGeneration(was.GetGeneration())
	if creation := edited.GetCreationTimestamp(); creation.IsZero() {
		edited.SetCreationTimestamp(was.GetCreationTimestamp())
	}
	edited.SetDeletionTimestamp(was.GetDeletionTimestamp())
	edited.SetDeletionGracePeriodSeconds(was.GetDeletionGracePeriodSeconds())
	edited.SetSelfLink("")
	if s.Admit != nil || s.Admission != nil || s.Extension != nil {
		edited = edited.DeepCopyObject().(object) // it may share parts with the stored object
	}
	if !s.Raw && r.Subresource == "" {
		s.complete(edited)
	}
	if err := s.admit(r, was, edited); err != nil {
		return nil, err
	}
	if err := s.mutate(r, was, edited); err != nil {
		return nil, err
	}
	if err := s.prepare(r, was, edited); err != nil {
		return nil, err
	}
	next, err := r.kind.convert(edited, r.kind.stored())
	if err != nil {
		return nil, err
	}
	if entries, ok := r.renewal(was, next); ok && !s.Raw {
		next.SetManagedFields(entries)
		return next, nil
	}
	if err := s.validateUpdate(r, was, next); err != nil {
		return nil, err
	}
	if r.kind.generation && r.Subresource != "status" && !sameContent(was, next) {
		next.SetGeneration(was.GetGeneration() + 1)
	}
	if !r.applied {
		if next, err = s.track(r, was, next); err != nil {
			return nil, err
		}
	}
	return next, s.validated(r, was, next)
}

// unconditional reports whether updates without a resourceVersion are permitted. Those of
// custom resources and a few others are not.
func (k *kind) unconditional() bool {
	switch k.plural {
	case "leases", "validatingwebhookconfigurations", "mutatingwebhookconfigurations":
		return k.scheme == nil
	}
	return k.crd == nil
}

// separate returns what an update by edited may change: all but the status, or, for a
// subresource, only its part.
func (r *request) separate(current, edited object) object {
	custom := r.kind.custom
	switch {
	case r.Subresource == "status" && custom:
		return keepMeta(edited, current)
	case r.Subresource == "status":
		out := withMeta(current, edited)
		if r.kind.plural == "deployments" {
			out.SetLabels(current.GetLabels())
		}
		if r.kind.plural == "pods" {
			out.SetOwnerReferences(current.GetOwnerReferences())
		}
		return out
	case r.Subresource == "" && r.kind.has("status"):
		out := shallow(edited)
		if custom {
			out = detached(edited)
		}
		setStatus(out, current)
		if ns, ok := out.(*v1.Namespace); ok {
			ns.Spec.Finalizers = current.(*v1.Namespace).Spec.Finalizers
		}
		return out
	case r.Subresource == "":
		return detached(edited)
	}
	return r.narrow(current, edited)
}

func conflict(r *request, message string) error {
	return apierrors.NewConflict(r.kind.resource(), r.Name, errors.New(message))
}

// success is the status of a successful operation.
func success(r *request, uid metav1.Object) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: uid.GetName(), Group: r.kind.group, Kind: r.kind.plural, UID: uid.GetUID()},
	}
}
