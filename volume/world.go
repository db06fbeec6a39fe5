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

	"github.com/kubeparts/kubeparts/compose"
)

// A podVolume is the desired and the actual state of one volume of one pod. Manager.mu guards it.
type podVolume struct {
	place  Place
	plugin Plugin // nil: unknown
	spec   *Spec
	pod    *v1.Pod         // nil: an earlier agent mounted it and Mount has not been called
	names  map[string]bool // its names in the pod, and whether it is read-only by that name
	device *device         // nil: it is not staged
	refs   []v1.ObjectReference

	refreshes    bool // it may change while it is mounted
	mountOptions bool // its plugin applies mount options

	// unclaimed: an earlier agent mounted it, and it is unknown whether its pod is still
	// desired. No step is taken.
	unclaimed bool
	desired   bool
	state     state
	ready     SetUpResult

	step    step // in progress
	stepAt  time.Time
	cancel  context.CancelFunc
	refresh bool
	failed  failure
	wakeAt  time.Time
	since   time.Time // when desired changed last

	attach      bool
	attachBy    time.Time
	failedSELab error             // the containers that use it have different SELinux labels
	seLabel     string            // SELinux label to mount it with; "": none
	size        resource.Quantity // of its file system; zero: unknown
}

// A device is the state of a volume that is staged once for all pods. Manager.mu guards it.
type device struct {
	name   string // unique on the node
	plugin Plugin
	spec   *Spec // that it is staged with, or was tried to be; of any user if it is not staged
	state  state
	step   step // in progress
	stepAt time.Time
	failed failure
	wakeAt time.Time
	users  map[Place]*podVolume

	// seLabel is the SELinux label of the last attempt to stage it; "": none, or an earlier
	// agent staged it and wrote no checkpoint.
	seLabel string
}

// A world is the desired and the actual state of world, and the volumes and devices whose next step must
// be determined. Manager.mu guards it.
type world struct {
	volumes map[Place]*podVolume
	pods    map[types.UID]map[Place]*podVolume
	devices map[string]*device
	refs    map[v1.ObjectReference]map[Place]*podVolume

	dirty        map[Place]*podVolume
	dirtyDevices map[string]*device
	timers       timers
}

func newWorld() world {
	return world{
		volumes: map[Place]*podVolume{}, pods: map[types.UID]map[Place]*podVolume{}, devices: map[string]*device{},
		refs: map[v1.ObjectReference]map[Place]*podVolume{}, dirty: map[Place]*podVolume{}, dirtyDevices: map[string]*device{},
	}
}

// add returns the volume at a place, which it creates if it does not exist.
func (w *world) add(at Place) *podVolume {
	v := w.volumes[at]
	if v == nil {
		v = &podVolume{place: at, names: map[string]bool{}}
		w.volumes[at] = v
		put(w.pods, at.PodUID, at, v)
	}
	return v
}

// drop deletes a volume that is neither desired nor mounted.
func (w *world) drop(v *podVolume) {
	w.setRefs(v, nil)
	w.setDevice(v, nil)
	delete(w.volumes, v.place)
	delete(w.dirty, v.place)
	take(w.pods, v.place.PodUID, v.place)
}

// setRefs sets the objects that the volume is made from.
func (w *world) setRefs(v *podVolume, refs []v1.ObjectReference) {
	for _, r := range v.refs {
		take(w.refs, r, v.place)
	}
	v.refs = refs
	for _, r := range refs {
		put(w.refs, r, v.place, v)
	}
}

// setDevice sets the device that the volume is on.
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

// addDevice returns the device with the name, which it creates if it does not exist.
func (w *world) addDevice(name string, p Plugin, spec *Spec) *device {
	d := w.devices[name]
	if d == nil {
		d = &device{name: name, plugin: p, spec: spec, users: map[Place]*podVolume{}}
		w.devices[name] = d
	}
	return d
}

// of returns the volumes of a pod, sorted by directory name.
func (w *world) of(uid types.UID) []*podVolume {
	return slices.SortedFunc(maps.Values(w.pods[uid]), func(a, b *podVolume) int {
		return cmp.Or(cmp.Compare(a.place.Name, b.place.Name), cmp.Compare(a.place.Plugin, b.place.Plugin))
	})
}

// named returns the volume with the name in the pod, or nil.
func (w *world) named(uid types.UID, name string) *podVolume {
	for _, v := range w.pods[uid] {
		if _, ok := v.names[name]; ok {
			return v
		}
	}
	return nil
}

// stepInput returns the input of nextStep for the volume.
func (v *podVolume) stepInput(attached bool) stepInput {
	l := stepInput{
		desired: v.desired, state: v.state, busy: v.unclaimed || v.step != noStep,
		refresh: v.refresh, refreshAt: v.ready.RefreshAt, grow: v.smaller(),
		notBefore: v.failed.notBefore, attach: v.attach, attached: attached, attachBy: v.attachBy,
	}
	if v.device != nil {
		d := v.device.stepInput()
		d.mislabeled = v.mislabeled() && !v.device.mounted()
		l.device = &d
	}
	return l
}

func (d *device) stepInput() deviceInput {
	return deviceInput{state: d.state, busy: d.step != noStep, notBefore: d.failed.notBefore, users: len(d.users)}
}

// mislabeled reports whether the device may be staged in another way than the volume needs: with another
// SELinux label, in another mode, or half, for another persistent volume. A volume that may be mounted
// keeps its label.
func (v *podVolume) mislabeled() bool {
	d := v.device
	return d != nil && v.state == notMounted && d.state != notMounted &&
		(d.seLabel != v.seLabel || d.spec.Block != v.spec.Block || d.state == uncertain && !d.stagedAs(v.spec))
}

// stagedAs reports whether spec is the volume that the device is staged with. Two persistent volumes may be
// the same device.
func (d *device) stagedAs(spec *Spec) bool {
	return d.spec.Block == spec.Block && d.spec.DirName() == spec.DirName()
}

// mounted reports whether a volume of a pod may have the device mounted.
func (d *device) mounted() bool {
	for _, user := range d.users {
		if user.state != notMounted || user.step != noStep {
			return true
		}
	}
	return false
}

// smaller reports whether the file system must be expanded.
func (v *podVolume) smaller() bool {
	if v.spec == nil || v.spec.PV == nil || v.spec.ReadOnly {
		return false
	}
	if _, ok := compose.As[Expander](v.plugin); !ok {
		return false
	}
	size := v.spec.PV.Spec.Capacity[v1.ResourceStorage]
	return !v.size.IsZero() && size.Cmp(v.size) > 0
}

// name returns the name of the volume in events.
func (v *podVolume) name() string {
	if v.spec != nil {
		return v.spec.DirName()
	}
	return v.place.Name
}

// wake schedules an evaluation of the volume at the time.
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

// due marks volumes and devices whose time has come as dirty, and returns the time of the next one.
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

// A timer schedules the evaluation of a volume or a device. A replaced timer stays in the heap until its
// time and is then ignored.
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

// put and take maintain a map of maps without empty inner maps.
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
