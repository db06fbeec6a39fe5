package volume

import (
	"cmp"
	"container/heap"
	"context"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// A podVolume is one volume of one pod: what is wanted of it and what is there
// (vol-1). Manager.mu guards it.
type podVolume struct {
	place  Place
	plugin Plugin // nil: nobody here knows what it is
	spec   *Spec
	pod    *v1.Pod         // nil: an earlier agent mounted it
	names  map[string]bool // by which the pod has it, and whether read-only there
	device *device         // nil: it is not staged
	refs   []ObjectRef

	// kept: an earlier agent has left it, and whether its pod is still wanted
	// is not known. Nothing is done with it.
	kept   bool
	wanted bool
	state  State
	ready  SetUpResult

	// inherited: an earlier agent has set it up, and this one has not yet
	// done so: an error that is [Definite] is about this one's try only.
	inherited bool

	step    step // being taken; nothing: none
	cancel  context.CancelFunc
	refresh bool
	failed  failure
	wakeAt  time.Time
	since   time.Time // when it was first wanted as it is

	attach      bool
	attachBy    time.Time
	failedSELab error             // the containers that use it have different SELinux labels
	seLabel     string            // SELinux label to mount it with; "": none
	size        resource.Quantity // that its file system is known to have
}

// A device is a volume that is staged once for all pods that use it.
type device struct {
	name   string // unique on the node
	plugin Plugin
	spec   *Spec
	state  State
	step   step
	failed failure
	wakeAt time.Time
	users  map[Place]*podVolume

	inherited bool // as of a podVolume

	// seLabel is the SELinux label of the last try to stage it; "": none, or an earlier
	// agent staged it and left no record.
	seLabel string
}

// A world is what is wanted and what is there, and who is to be looked at next.
// Manager.mu guards it.
type world struct {
	volumes map[Place]*podVolume
	pods    map[types.UID]map[Place]*podVolume
	devices map[string]*device
	refs    map[ObjectRef]map[Place]*podVolume

	dirty        map[Place]*podVolume
	dirtyDevices map[string]*device
	timers       timers
}

func newWorld() world {
	return world{
		volumes: map[Place]*podVolume{}, pods: map[types.UID]map[Place]*podVolume{}, devices: map[string]*device{},
		refs: map[ObjectRef]map[Place]*podVolume{}, dirty: map[Place]*podVolume{}, dirtyDevices: map[string]*device{},
	}
}

// add returns the volume at a place, which it makes if there is none.
func (w *world) add(at Place) *podVolume {
	v := w.volumes[at]
	if v == nil {
		v = &podVolume{place: at, names: map[string]bool{}}
		w.volumes[at] = v
		put(w.pods, at.PodUID, at, v)
	}
	return v
}

// drop forgets a volume of which nothing is there.
func (w *world) drop(v *podVolume) {
	w.setRefs(v, nil)
	w.setDevice(v, nil)
	delete(w.volumes, v.place)
	delete(w.dirty, v.place)
	take(w.pods, v.place.PodUID, v.place)
}

// setRefs says which objects the volume is made from.
func (w *world) setRefs(v *podVolume, refs []ObjectRef) {
	for _, r := range v.refs {
		take(w.refs, r, v.place)
	}
	v.refs = refs
	for _, r := range refs {
		put(w.refs, r, v.place, v)
	}
}

// setDevice says which device the volume is on.
func (w *world) setDevice(v *podVolume, d *device) {
	if v.device == d {
		return
	}
	if v.device != nil {
		delete(v.device.users, v.place)
		w.dirtyDevices[v.device.name] = v.device
	}
	if v.device = d; d != nil {
		d.users[v.place] = v
	}
}

// addDevice returns the device of that name, which it makes if there is none.
func (w *world) addDevice(name string, p Plugin, spec *Spec) *device {
	d := w.devices[name]
	if d == nil {
		d = &device{name: name, plugin: p, spec: spec, users: map[Place]*podVolume{}}
		w.devices[name] = d
	}
	return d
}

// of returns the volumes of a pod, by the names of their directories.
func (w *world) of(uid types.UID) []*podVolume {
	return slices.SortedFunc(maps.Values(w.pods[uid]), func(a, b *podVolume) int {
		return cmp.Or(cmp.Compare(a.place.Name, b.place.Name), cmp.Compare(a.place.Plugin, b.place.Plugin))
	})
}

// named returns the volume that the pod calls so.
func (w *world) named(uid types.UID, name string) *podVolume {
	for _, v := range w.pods[uid] {
		if _, ok := v.names[name]; ok {
			return v
		}
	}
	return nil
}

// look returns what the next step of the volume depends on.
func (v *podVolume) look(attached bool) look {
	l := look{
		wanted: v.wanted, state: v.state, busy: v.kept || v.step != nothing,
		refresh: v.refresh, refreshAt: v.ready.RefreshAt, grow: v.smaller(),
		notBefore: v.failed.notBefore, attach: v.attach, attached: attached, attachBy: v.attachBy,
	}
	if v.device != nil {
		d := v.device.look()
		d.mislabeled = v.mislabeled() && !v.device.mounted()
		l.device = &d
	}
	return l
}

func (d *device) look() deviceLook {
	return deviceLook{state: d.state, busy: d.step != nothing, notBefore: d.failed.notBefore, users: len(d.users)}
}

// mislabeled reports whether the device may be staged with another SELinux label than the
// volume is to be mounted with. A volume that may be mounted keeps the label that it has.
func (v *podVolume) mislabeled() bool {
	d := v.device
	return d != nil && v.state == NotMounted && d.state != NotMounted && d.seLabel != v.seLabel
}

// mounted reports whether a volume of a pod may have the device mounted.
func (d *device) mounted() bool {
	for _, user := range d.users {
		if user.state != NotMounted || user.step != nothing {
			return true
		}
	}
	return false
}

// smaller reports whether the file system is to be expanded (vol-16).
func (v *podVolume) smaller() bool {
	if v.spec == nil || v.spec.PV == nil || v.spec.ReadOnly {
		return false
	}
	if _, ok := v.plugin.(Expander); !ok {
		return false
	}
	size := v.spec.PV.Spec.Capacity[v1.ResourceStorage]
	return !v.size.IsZero() && size.Cmp(v.size) > 0
}

// name is what the volume is called in events.
func (v *podVolume) name() string {
	if v.spec != nil {
		return v.spec.DirName()
	}
	return v.place.Name
}

// wake asks for a look at the volume at that time.
func (w *world) wake(v *podVolume, at time.Time) {
	if v.wakeAt.Equal(at) {
		return
	}
	if v.wakeAt = at; !at.IsZero() {
		heap.Push(&w.timers, timer{at: at, volume: v})
	}
}

func (w *world) wakeDevice(d *device, at time.Time) {
	if d.wakeAt.Equal(at) {
		return
	}
	if d.wakeAt = at; !at.IsZero() {
		heap.Push(&w.timers, timer{at: at, device: d})
	}
}

// due marks what has waited for its time, and returns when the next one is due.
func (w *world) due(now time.Time) time.Time {
	for len(w.timers) > 0 {
		t := w.timers[0]
		stale := t.volume != nil && (!t.volume.wakeAt.Equal(t.at) || w.volumes[t.volume.place] != t.volume) ||
			t.device != nil && (!t.device.wakeAt.Equal(t.at) || w.devices[t.device.name] != t.device)
		switch {
		case stale:
		case t.at.After(now):
			return t.at
		case t.volume != nil:
			w.dirty[t.volume.place] = t.volume
			t.volume.wakeAt = time.Time{}
		default:
			w.dirtyDevices[t.device.name] = t.device
			t.device.wakeAt = time.Time{}
		}
		heap.Pop(&w.timers)
	}
	return time.Time{}
}

// A timer is when to look at a volume or a device. One that was set anew since
// stays in the heap until its time, and then is nobody's.
type timer struct {
	at     time.Time
	volume *podVolume
	device *device
}

type timers []timer

func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t timers) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *timers) Push(x any)        { *t = append(*t, x.(timer)) }
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = timer{}
	*t = old[:len(old)-1]
	return last
}

// put and take keep a map of maps without empty ones.
func put[A, B comparable, V any](m map[A]map[B]V, a A, b B, v V) {
	if m[a] == nil {
		m[a] = map[B]V{}
	}
	m[a][b] = v
}

func take[A, B comparable, V any](m map[A]map[B]V, a A, b B) {
	if delete(m[a], b); len(m[a]) == 0 {
		delete(m, a)
	}
}
