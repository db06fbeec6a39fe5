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

// A Device is a device that a plugin reports.
type Device struct {
	ID      string
	Healthy bool

	// Nodes are the NUMA nodes that it is close to; 0 if it does not report any.
	Nodes topology.Mask
}

// A grant is the devices of one resource that are allocated to a container.
type grant struct {
	IDs map[string]topology.Mask

	// Response is the marshaled ContainerAllocateResponse of the plugin. If nil, Allocate
	// is called again before the container is created.
	Response []byte

	// idle is true if the pod did not run when the manager was opened: the devices are
	// kept only if they still exist when the pod is admitted.
	idle bool
}

// A resource is the devices with one resource name.
type resource struct {
	devices map[string]Device

	// plugin is the connected plugin; nil if there is none. listed is true after it has
	// reported its devices.
	plugin *plugin
	listed bool

	// prepares is true if the last plugin requires PreStartContainer.
	prepares bool

	// since is when the last plugin disconnected; zero if none has connected since the
	// start.
	since time.Time
}

// A holder identifies a container by pod and name.
type holder struct {
	uid  types.UID
	name string
}

// A ledger contains the devices and their allocations. It performs no I/O.
type ledger struct {
	resources map[string]*resource
	grants    map[holder]map[string]grant // by container and resource
}

func newLedger() ledger {
	return ledger{resources: map[string]*resource{}, grants: map[holder]map[string]grant{}}
}

// of returns the resource with the name and creates it if necessary.
func (l *ledger) of(name string) *resource {
	r := l.resources[name]
	if r == nil {
		r = &resource{devices: map[string]Device{}}
		l.resources[name] = r
	}
	return r
}

// replace sets the devices that a plugin reported and reports whether anything changed.
// Devices without an ID are ignored; of duplicates the last is used.
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

// stopped marks all devices unhealthy after their plugin has disconnected.
func (r *resource) stopped(now time.Time) {
	r.plugin, r.listed, r.since = nil, false, now
	for id, d := range r.devices {
		d.Healthy = false
		r.devices[id] = d
	}
}

// healthy returns the number of healthy devices.
func (r *resource) healthy() int {
	n := 0
	for _, d := range r.devices {
		if d.Healthy {
			n++
		}
	}
	return n
}

// free returns the healthy devices of a resource that are not allocated.
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

// give adds an allocation.
func (l *ledger) give(h holder, name string, g grant) {
	if l.grants[h] == nil {
		l.grants[h] = map[string]grant{}
	}
	l.grants[h][name] = g
}

// take removes the allocation of a resource to a container.
func (l *ledger) take(h holder, name string) {
	delete(l.grants[h], name)
	if len(l.grants[h]) == 0 {
		delete(l.grants, h)
	}
}

// drop removes the allocations of the pods for which is returns true, and reports whether
// there were any.
func (l *ledger) drop(is func(uid types.UID) bool) bool {
	before := len(l.grants)
	maps.DeleteFunc(l.grants, func(h holder, _ map[string]grant) bool { return is(h.uid) })
	return len(l.grants) != before
}

// expire removes resources whose plugin has been disconnected for at least grace, and
// returns their names.
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

// extended reports whether a resource may belong to a plugin: its name has a domain, is
// not native to Kubernetes, and is valid in a quota.
func extended(name string) bool {
	domain, _, qualified := strings.Cut(name, "/")
	if !qualified || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || strings.HasPrefix(name, "requests.") {
		return false
	}
	return len(validation.IsQualifiedName("requests."+name)) == 0
}
