package apitest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"k8s.io/apimachinery/pkg/runtime"
)

// An object is never changed once it is stored.
type object interface {
	runtime.Object
	metav1.Object
}

// A key is the name of an object of a resource.
type key struct{ namespace, name string }

func keyOf(o object) key { return key{o.GetNamespace(), o.GetName()} }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// An item is one version of an object, in the stored version of its kind.
type item struct {
	kind     *kind
	object   object
	version  int64
	encoding encoding
}

// An event is one change: was is nil for a new object, is for a deleted one, whose last
// state, with the version of the deletion, is last.
type event struct {
	version       int64
	key           key
	was, is, last *item
}

// A store contains the objects and their history.
type store struct {
	version    int64 // of the last change
	horizon    int64 // Compact deleted the history up to this version
	uids       int
	tokens     int
	names      int // generated
	tables     map[schema.GroupResource]*objects
	dependents map[types.UID]map[ref]struct{} // by owner
	uidKeys    map[types.UID]ref
	events     instant // the last one at which Events were created
}

// A ref identifies a stored object.
type ref struct {
	kind *kind
	key  key
}

// objects are the objects of one resource.
type objects struct {
	all         map[key]*item
	byNamespace map[string]map[key]*item
	log         []event // since compacted
	compacted   int64   // the history up to this version is deleted
	watchers    map[*watcher]struct{}
}

// of returns the objects of a resource.
func (t *store) of(k *kind) *objects {
	gr := k.resource()
	o := t.tables[gr]
	if o == nil {
		if t.tables == nil {
			t.tables = map[schema.GroupResource]*objects{}
			t.dependents, t.uidKeys = map[types.UID]map[ref]struct{}{}, map[types.UID]ref{}
		}
		o = &objects{compacted: t.horizon, all: map[key]*item{}, byNamespace: map[string]map[key]*item{}, watchers: map[*watcher]struct{}{}}
		t.tables[gr] = o
	}
	return o
}

// in returns the objects of a namespace; "" means all.
func (o *objects) in(namespace string) map[key]*item {
	if namespace == "" {
		return o.all
	}
	return o.byNamespace[namespace]
}

// newUID returns an unused UID.
func (t *store) newUID() types.UID {
	t.uids++
	return types.UID(fmt.Sprintf("uid-%d", t.uids))
}

// uid returns an unused UID.
func (s *Server) uid() types.UID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.newUID()
}

// now is the time in the precision of the API.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// putLocked stores one, which it owns from then on.
func (s *Server) putLocked(k *kind, one object) *item {
	t := &s.table
	o := t.of(k)
	at := keyOf(one)
	was := o.all[at]
	t.version++
	if one.GetUID() == "" {
		one.SetUID(t.newUID())
	}
	if creation := one.GetCreationTimestamp(); creation.IsZero() {
		one.SetCreationTimestamp(now())
	}
	one.SetResourceVersion(strconv.FormatInt(t.version, 10))
	is := &item{kind: k, object: one, version: t.version}
	if was == nil || !sameLinks(was.object, one) {
		if was != nil {
			t.unlink(was)
		}
		t.link(is)
	}
	o.all[at] = is
	if o.byNamespace[at.namespace] == nil {
		o.byNamespace[at.namespace] = map[key]*item{}
	}
	o.byNamespace[at.namespace][at] = is
	s.logLocked(o, event{version: t.version, key: at, was: was, is: is})
	return is
}

// removeLocked deletes an item and returns the version of the deletion. Watches are sent
// its last state with that version.
func (s *Server) removeLocked(was *item) (version int64) {
	t := &s.table
	o := t.of(was.kind)
	at := keyOf(was.object)
	t.unlink(was)
	delete(o.all, at)
	delete(o.byNamespace[at.namespace], at)
	t.version++
	gone := detached(was.object)
	gone.SetResourceVersion(strconv.FormatInt(t.version, 10))
	last := &item{kind: was.kind, object: gone, version: t.version}
	s.logLocked(o, event{version: t.version, key: at, was: was, last: last})
	return t.version
}

// link indexes an item by its UID and its owners.
func (t *store) link(i *item) {
	r := ref{i.kind, keyOf(i.object)}
	t.uidKeys[i.object.GetUID()] = r
	for _, owner := range i.object.GetOwnerReferences() {
		if t.dependents[owner.UID] == nil {
			t.dependents[owner.UID] = map[ref]struct{}{}
		}
		t.dependents[owner.UID][r] = struct{}{}
	}
}

func (t *store) unlink(i *item) {
	r := ref{i.kind, keyOf(i.object)}
	delete(t.uidKeys, i.object.GetUID())
	for _, owner := range i.object.GetOwnerReferences() {
		delete(t.dependents[owner.UID], r)
		if len(t.dependents[owner.UID]) == 0 {
			delete(t.dependents, owner.UID)
		}
	}
}

// sameLinks reports whether two versions of an object have the same UID and owners.
func sameLinks(a, b object) bool {
	return a.GetUID() == b.GetUID() && slices.EqualFunc(a.GetOwnerReferences(), b.GetOwnerReferences(),
		func(x, y metav1.OwnerReference) bool { return x.UID == y.UID })
}

// defaultHistory is the number of changes of a resource that are kept.
const defaultHistory = 10_000

// logLocked appends an event to the history and delivers it to the watches.
func (s *Server) logLocked(o *objects, e event) {
	o.log = append(o.log, e)
	if limit := cmp.Or(s.History, defaultHistory); len(o.log) >= 2*limit {
		drop := len(o.log) - limit
		o.compacted = o.log[drop-1].version
		o.log = slices.Clone(o.log[drop:])
	}
	if n := len(o.log) - encodedHistory; n >= 0 {
		for _, i := range []*item{o.log[n].was, o.log[n].is, o.log[n].last} {
			if i != nil {
				i.encoding.drop()
			}
		}
	}
	if e.was != nil {
		e.was.encoding.replaced()
	}
	for w := range o.watchers {
		w.deliverLocked(e)
	}
}

// encodedHistory is the number of changes of a resource whose encoded forms are kept, for
// watches that lag behind: the forms take as much memory as the objects. A form that is needed
// later, for a list or a get, is made again.
const encodedHistory = 64

// since returns the events after a version; false if they are compacted.
func (o *objects) since(version int64) ([]event, bool) {
	if version < o.compacted {
		return nil, false
	}
	first, _ := slices.BinarySearchFunc(o.log, version+1, func(e event, v int64) int { return cmp.Compare(e.version, v) })
	return o.log[first:], true
}

// at returns the objects of a namespace as of a version; false if the history since then is
// compacted.
func (o *objects) at(version int64, namespace string) (map[key]*item, bool) {
	events, ok := o.since(version)
	if !ok || len(events) == 0 {
		return o.in(namespace), ok
	}
	past := maps.Clone(o.in(namespace))
	if past == nil {
		past = map[key]*item{}
	}
	for _, e := range slices.Backward(events) {
		switch {
		case namespace != "" && e.key.namespace != namespace:
		case e.was == nil:
			delete(past, e.key)
		default:
			past[e.key] = e.was
		}
	}
	return past, true
}

// sorted returns the items that match, by namespace and name.
func sorted(items map[key]*item, selected *matcher) []*item {
	out := make([]*item, 0, len(items))
	for _, i := range items {
		if selected.matches(i.object) {
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, b *item) int { return keyOf(a.object).compare(keyOf(b.object)) })
	return out
}
