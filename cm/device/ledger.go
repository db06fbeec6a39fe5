package device

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Device is one of those that a plugin tells of.
type Device struct {
	ID      string
	Healthy bool

	// Nodes are the NUMA nodes that it is close to; 0: it doesn't say.
	Nodes topology.Mask
}

// A grant is the devices of one resource that a container has.
type grant struct {
	IDs map[string]topology.Mask

	// Response is what the plugin answered, a ContainerAllocateResponse. Nil: it is
	// not known any more, and asked for again before the container is made.
	Response []byte

	// idle: nothing of the pod ran when the manager was made. The devices are kept
	// for it if they are still there when it is admitted, and are others else.
	idle bool
}

// A resource is what is known of the devices of one name.
type resource struct {
	devices map[string]Device

	// plugin is who offers them now; nil if nobody does. listed: it has told
	// which there are.
	plugin *plugin
	listed bool

	// prepares: the last plugin wants to know of each start of a container (dev-7).
	prepares bool

	// since is when the last plugin went away; zero if there was none since the
	// start.
	since time.Time
}

// A holder is a container, by pod and name.
type holder struct {
	uid  types.UID
	name string
}

// A ledger is who has which devices, of which there are. It decides, and does
// nothing.
type ledger struct {
	resources map[string]*resource
	grants    map[holder]map[string]grant // by container and resource
}

func newLedger() ledger {
	return ledger{resources: map[string]*resource{}, grants: map[holder]map[string]grant{}}
}

// of returns what is known of a resource, and makes it known if it is new.
func (l *ledger) of(name string) *resource {
	r := l.resources[name]
	if r == nil {
		r = &resource{devices: map[string]Device{}}
		l.resources[name] = r
	}
	return r
}

// replace makes the list of a resource's devices the one that a plugin sent
// (dev-4). Devices without an ID are none; of one that is there twice the later
// counts. It reports whether anything is new.
func (r *resource) replace(list []Device) bool {
	next := map[string]Device{}
	for _, d := range list {
		if d.ID != "" {
			next[d.ID] = d
		}
	}
	changed := !r.listed || !maps.Equal(next, r.devices)
	r.devices, r.listed = next, true
	return changed
}

// stopped marks all devices unhealthy when their plugin is gone (dev-5).
func (r *resource) stopped(now time.Time) {
	r.plugin, r.listed, r.since = nil, false, now
	for id, d := range r.devices {
		d.Healthy = false
		r.devices[id] = d
	}
}

// healthy returns how many devices can be given out, if nobody had any.
func (r *resource) healthy() int {
	n := 0
	for _, d := range r.devices {
		if d.Healthy {
			n++
		}
	}
	return n
}

// free returns the healthy devices of a resource that nobody has.
func (l *ledger) free(name string) map[string]Device {
	free := map[string]Device{}
	r := l.resources[name]
	if r == nil {
		return free
	}
	for id, d := range r.devices {
		if d.Healthy {
			free[id] = d
		}
	}
	for _, granted := range l.grants {
		for id := range granted[name].IDs {
			delete(free, id)
		}
	}
	return free
}

// give notes what a container has got.
func (l *ledger) give(h holder, name string, g grant) {
	if l.grants[h] == nil {
		l.grants[h] = map[string]grant{}
	}
	l.grants[h][name] = g
}

// take notes that a container has nothing of a resource.
func (l *ledger) take(h holder, name string) {
	delete(l.grants[h], name)
	if len(l.grants[h]) == 0 {
		delete(l.grants, h)
	}
}

// drop forgets what the containers of some pods have, and reports whether they had
// anything.
func (l *ledger) drop(is func(uid types.UID) bool) bool {
	before := len(l.grants)
	maps.DeleteFunc(l.grants, func(h holder, _ map[string]grant) bool { return is(h.uid) })
	return len(l.grants) != before
}

// expire forgets resources whose plugin has been away for longer than grace
// (dev-5), and returns their names.
func (l *ledger) expire(now time.Time, grace time.Duration) []string {
	var gone []string
	for name, r := range l.resources {
		if r.plugin == nil && !r.since.IsZero() && now.Sub(r.since) >= grace {
			gone = append(gone, name)
			delete(l.resources, name)
		}
	}
	slices.Sort(gone)
	return gone
}

// extended reports whether a resource may be a plugin's: its name has a domain, it
// is not Kubernetes' own, and a quota can name it (dev-2).
func extended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	if !qualified || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasPrefix(name, "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+name)) == 0
}
