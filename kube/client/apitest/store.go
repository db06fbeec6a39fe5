package apitest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"
)

// A store has the objects and their history.
type store struct {
	version   int64 // of the last change
	compacted int64 // the history before is deleted
	uids      int
	tokens    int
	objects   map[id]object
	log       []event
}

// An id is the name of an object.
type id struct{ resource, namespace, name string }

// An object is never changed once it is in the store.
type object interface {
	runtime.Object
	metav1.Object
}

// An event is one change: was is nil for a new object, is for one that is gone.
type event struct {
	version int64
	id      id
	was, is object
}

// Put creates or replaces objects, as another client would. It returns the stored objects.
// It panics if the server does not support their kind.
func (s *Server) Put(objects ...runtime.Object) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []runtime.Object
	for _, o := range objects {
		one := o.DeepCopyObject().(object)
		i := idOf(one)
		if was := s.table.objects[i]; was != nil && one.GetUID() == "" {
			one.SetUID(was.GetUID())
		}
		out = append(out, s.putLocked(i, one))
	}
	return out
}

// Remove deletes an object immediately, as another client would. A missing object is not an
// error.
func (s *Server) Remove(resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLocked(id{resource, namespace, name})
}

// Get returns a copy of an object; nil if it does not exist.
func (s *Server) Get(resource, namespace, name string) runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.table.objects[id{resource, namespace, name}]
	if o == nil {
		return nil
	}
	return o.DeepCopyObject()
}

// Pod returns a copy of a pod; nil if it does not exist.
func (s *Server) Pod(namespace, name string) *v1.Pod {
	pod, _ := s.Get("pods", namespace, name).(*v1.Pod)
	return pod
}

// List returns copies of all objects of a resource, sorted by namespace and name.
func (s *Server) List(resource string) []runtime.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []runtime.Object
	for _, o := range s.listLocked(&request{Call: Call{Resource: resource}}, everything) {
		out = append(out, o.DeepCopyObject())
	}
	return out
}

// Compact deletes the history: watches from earlier versions result in 410 Gone, including
// open ones.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.version++
	s.table.compacted, s.table.log = s.table.version, nil
	s.tellLocked()
}

// idOf returns the id of an object by its Go type.
func idOf(o object) id {
	gvks, _, err := scheme.Scheme.ObjectKinds(o)
	if err != nil {
		panic(err)
	}
	for resource, k := range kinds {
		if k.kind == gvks[0].Kind {
			return id{resource, o.GetNamespace(), o.GetName()}
		}
	}
	panic(fmt.Sprintf("apitest: there are no objects of kind %s here", gvks[0].Kind))
}

func (s *Server) putLocked(i id, one object) object {
	t := &s.table
	if t.objects == nil {
		t.objects = map[id]object{}
	}
	was := t.objects[i]
	t.version++
	if one.GetUID() == "" {
		t.uids++
		one.SetUID(types.UID(fmt.Sprintf("uid-%d", t.uids)))
	}
	if creation := one.GetCreationTimestamp(); creation.IsZero() {
		one.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	}
	one.SetResourceVersion(strconv.FormatInt(t.version, 10))
	t.objects[i] = one
	t.log = append(t.log, event{t.version, i, was, one})
	s.tellLocked()
	return one
}

func (s *Server) removeLocked(i id) {
	was := s.table.objects[i]
	if was == nil {
		return
	}
	delete(s.table.objects, i)
	s.table.version++
	last := was.DeepCopyObject().(object)
	last.SetResourceVersion(strconv.FormatInt(s.table.version, 10))
	s.table.log = append(s.table.log, event{s.table.version, i, last, nil})
	s.tellLocked()
}

// do executes a request that is not a watch.
func (s *Server) do(r *request) (runtime.Object, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := id{r.Resource, r.Namespace, r.Name}
	there := s.table.objects[i]
	if r.Name != "" && there == nil && r.Subresource != "token" {
		return nil, 0, apierrors.NewNotFound(r.gvr.GroupResource(), r.Name)
	}
	switch r.Verb {
	case "get":
		return there, http.StatusOK, nil
	case "list":
		list, err := s.makeListLocked(r)
		return list, http.StatusOK, err
	case "create":
		if r.Subresource == "token" {
			return s.tokenLocked(r)
		}
		if r.Subresource == "binding" {
			return s.bindLocked(r, i, there)
		}
		return s.createLocked(r)
	case "update":
		return s.updateLocked(r, i, there)
	case "patch":
		return s.patchLocked(r, i, there)
	case "delete":
		return s.deleteLocked(r, i, there)
	}
	return nil, 0, apierrors.NewMethodNotSupported(r.gvr.GroupResource(), r.Verb)
}

func (s *Server) createLocked(r *request) (runtime.Object, int, error) {
	decoded, err := r.decode(nil)
	if err != nil {
		return nil, 0, err
	}
	one, ok := decoded.(object)
	if !ok {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("%T is no object", decoded))
	}
	if one.GetName() == "" && one.GetGenerateName() != "" {
		s.table.uids++
		one.SetName(fmt.Sprintf("%s%05d", one.GetGenerateName(), s.table.uids))
	}
	if strings.HasSuffix(r.Resource, "reviews") {
		return one, http.StatusCreated, nil // they are answers, not objects
	}
	if one.GetResourceVersion() != "" {
		return nil, 0, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	one.SetNamespace(r.Namespace)
	one.SetUID("")
	i := id{r.Resource, r.Namespace, one.GetName()}
	if s.table.objects[i] != nil {
		return nil, 0, apierrors.NewAlreadyExists(r.gvr.GroupResource(), one.GetName())
	}
	return s.putLocked(i, one), http.StatusCreated, nil
}

func (s *Server) tokenLocked(r *request) (runtime.Object, int, error) {
	decoded, err := r.decode(nil)
	if err != nil {
		return nil, 0, err
	}
	req, ok := decoded.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("%T is no TokenRequest", decoded))
	}
	s.table.tokens++
	seconds := int64(3600)
	if req.Spec.ExpirationSeconds != nil {
		seconds = *req.Spec.ExpirationSeconds
	}
	req.Status.Token = fmt.Sprintf("token-%d", s.table.tokens)
	req.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(seconds) * time.Second))
	r.gvr = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1"}
	return req, http.StatusCreated, nil
}

// bindLocked gives a pod its node, once.
func (s *Server) bindLocked(r *request, i id, there object) (runtime.Object, int, error) {
	decoded, err := r.decode(nil)
	if err != nil {
		return nil, 0, err
	}
	binding, ok := decoded.(*v1.Binding)
	pod, isPod := there.(*v1.Pod)
	if !ok || !isPod {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("%T is no Binding of a pod", decoded))
	}
	switch {
	case binding.UID != "" && binding.UID != pod.UID:
		return nil, 0, conflict(r, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", binding.UID, pod.UID))
	case pod.DeletionTimestamp != nil:
		return nil, 0, conflict(r, fmt.Sprintf("pod %s is being deleted, cannot be assigned to a host", pod.Name))
	case pod.Spec.NodeName != "":
		return nil, 0, conflict(r, fmt.Sprintf("pod %s is already assigned to node %q", pod.Name, pod.Spec.NodeName))
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = binding.Target.Name
	bound.Status.Conditions = slices.DeleteFunc(bound.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	bound.Status.Conditions = append(bound.Status.Conditions, v1.PodCondition{
		Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
	})
	s.putLocked(i, bound)
	r.gvr = metav1.SchemeGroupVersion.WithResource("") // the answer is a Status
	return &metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated}, http.StatusCreated, nil
}

func (s *Server) updateLocked(r *request, i id, there object) (runtime.Object, int, error) {
	decoded, err := r.decode(nil)
	if err != nil {
		return nil, 0, err
	}
	one, ok := decoded.(object)
	if !ok {
		return nil, 0, apierrors.NewBadRequest(fmt.Sprintf("%T is no object", decoded))
	}
	return s.changeLocked(r, i, there, one)
}

func (s *Server) patchLocked(r *request, i id, there object) (runtime.Object, int, error) {
	if !strings.HasPrefix(r.mime, string(types.StrategicMergePatchType)) {
		return nil, 0, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, r.Verb, r.gvr.GroupResource(), r.Name, r.mime, 0, true)
	}
	before, err := json.Marshal(there)
	if err != nil {
		return nil, 0, err
	}
	empty, err := scheme.Scheme.New(r.gvk)
	if err != nil {
		return nil, 0, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, r.body, empty)
	if err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	if err := json.Unmarshal(after, empty); err != nil {
		return nil, 0, apierrors.NewBadRequest(err.Error())
	}
	return s.changeLocked(r, i, there, empty.(object))
}

// changeLocked stores next in place of there.
func (s *Server) changeLocked(r *request, i id, there, next object) (runtime.Object, int, error) {
	if uid := next.GetUID(); uid != "" && uid != there.GetUID() {
		return nil, 0, conflict(r, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", uid, there.GetUID()))
	}
	if version := next.GetResourceVersion(); version != "" && version != "0" && version != there.GetResourceVersion() {
		return nil, 0, conflict(r, "the object has been modified; please apply your changes to the latest version and try again")
	}
	changed := next
	if kinds[r.Resource].status {
		var err error
		if changed, err = split(there, next, r.Subresource == "status"); err != nil {
			return nil, 0, err
		}
	}
	changed.SetUID(there.GetUID())
	changed.SetResourceVersion(there.GetResourceVersion())
	before, err := json.Marshal(there)
	if err != nil {
		return nil, 0, err
	}
	after, err := json.Marshal(changed)
	if err != nil {
		return nil, 0, err
	}
	if string(before) == string(after) {
		return there, http.StatusOK, nil // nothing happened
	}
	if changed.GetDeletionTimestamp() != nil && len(changed.GetFinalizers()) == 0 && changed.GetDeletionGracePeriodSeconds() != nil && *changed.GetDeletionGracePeriodSeconds() == 0 {
		s.removeLocked(i)
		return changed, http.StatusOK, nil
	}
	return s.putLocked(i, changed), http.StatusOK, nil
}

// split returns there with the status of next, or with all but that.
func split(there, next object, status bool) (object, error) {
	var parts [2]map[string]json.RawMessage
	for i, o := range []object{there, next} {
		data, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(data, &parts[i]); err != nil {
			return nil, err
		}
	}
	from, to := parts[0]["status"], parts[1]
	if status {
		from, to = parts[1]["status"], parts[0]
	}
	to["status"] = from
	if from == nil {
		delete(to, "status")
	}
	data, err := json.Marshal(to)
	if err != nil {
		return nil, err
	}
	gvks, _, err := scheme.Scheme.ObjectKinds(there)
	if err != nil {
		return nil, err
	}
	fresh, err := scheme.Scheme.New(gvks[0])
	if err != nil {
		return nil, err
	}
	return fresh.(object), json.Unmarshal(data, fresh)
}

func (s *Server) deleteLocked(r *request, i id, there object) (runtime.Object, int, error) {
	opts := metav1.DeleteOptions{}
	if len(r.body) > 0 {
		if _, _, err := scheme.Codecs.UniversalDeserializer().Decode(r.body, &schema.GroupVersionKind{Version: "v1", Kind: "DeleteOptions"}, &opts); err != nil {
			return nil, 0, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := opts.Preconditions; p != nil && p.UID != nil && *p.UID != there.GetUID() {
		return nil, 0, conflict(r, fmt.Sprintf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, there.GetUID()))
	}
	pod, isPod := there.(*v1.Pod)
	grace := int64(0)
	if isPod && pod.Spec.NodeName != "" && pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed {
		grace = 30
		if pod.Spec.TerminationGracePeriodSeconds != nil {
			grace = *pod.Spec.TerminationGracePeriodSeconds
		}
	}
	if opts.GracePeriodSeconds != nil {
		grace = *opts.GracePeriodSeconds
	}
	if grace == 0 && len(there.GetFinalizers()) == 0 {
		s.removeLocked(i)
		return there, http.StatusOK, nil
	}
	next := there.DeepCopyObject().(object)
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second))
	if next.GetDeletionTimestamp() == nil || grace == 0 {
		next.SetDeletionTimestamp(&at)
		next.SetDeletionGracePeriodSeconds(&grace)
	}
	return s.putLocked(i, next), http.StatusOK, nil
}

func conflict(r *request, message string) error {
	return apierrors.NewConflict(r.gvr.GroupResource(), r.Name, fmt.Errorf("%s", message))
}

func (s *Server) makeListLocked(r *request) (runtime.Object, error) {
	selected, err := r.selection()
	if err != nil {
		return nil, err
	}
	list, err := scheme.Scheme.New(r.gvr.GroupVersion().WithKind(r.gvk.Kind + "List"))
	if err != nil {
		return nil, err
	}
	var items []runtime.Object
	for _, o := range s.listLocked(r, selected) {
		items = append(items, o)
	}
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.FormatInt(s.table.version, 10))
	return list, nil
}

// listLocked returns what matches, by namespace and name.
func (s *Server) listLocked(r *request, selected selection) []object {
	var out []object
	for i, o := range s.table.objects {
		if r.matches(i) && selected.matches(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return out
}

func (r *request) matches(i id) bool {
	return i.resource == r.Resource && (r.Namespace == "" || r.Namespace == i.namespace)
}
