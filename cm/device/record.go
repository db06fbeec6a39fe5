package device

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
)

// stateFile is the name of the kubelet's checkpoint file in the directory of the plugins.
const stateFile = "kubelet_internal_checkpoint"

// errCorrupt is returned for a checkpoint that encode did not write.
var errCorrupt = errors.New("checkpoint is corrupted")

// record is the format of the kubelet's file.
type record struct {
	Data     data
	Checksum uint64
}

type data struct {
	PodDeviceEntries  []entry
	RegisteredDevices map[string][]string
}

type entry struct {
	PodUID        string
	ContainerName string
	ResourceName  string
	DeviceIDs     map[int64][]string // by NUMA node; -1: no node
	AllocResp     []byte
}

// dump returns the text that the kubelet's checksum covers.
func (d data) dump() string {
	var b strings.Builder
	b.WriteString("(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)")
	if d.PodDeviceEntries == nil {
		b.WriteString("<nil>")
	} else {
		b.WriteByte('[')
		for i, e := range d.PodDeviceEntries {
			if i > 0 {
				b.WriteByte(' ')
			}
			fmt.Fprintf(&b, "{PodUID:(string)%s ContainerName:(string)%s ResourceName:(string)%s DeviceIDs:(checkpoint.DevicesPerNUMA)%s AllocResp:([]uint8)",
				e.PodUID, e.ContainerName, e.ResourceName, dumpLists(e.DeviceIDs))
			if e.AllocResp == nil {
				b.WriteString("<nil>}")
			} else {
				fmt.Fprintf(&b, "%v}", e.AllocResp)
			}
		}
		b.WriteByte(']')
	}
	b.WriteString(" RegisteredDevices:(map[string][]string)" + dumpLists(d.RegisteredDevices) + "}")
	return b.String()
}

func dumpLists[K cmp.Ordered](m map[K][]string) string {
	if m == nil {
		return "<nil>"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		list := "<nil>"
		if m[key] != nil {
			list = "[" + strings.Join(m[key], " ") + "]"
		}
		parts = append(parts, fmt.Sprintf("%v:%s", key, list))
	}
	return "map[" + strings.Join(parts, " ") + "]"
}

// encode returns the allocations and devices in the kubelet's format.
func (l *ledger) encode() []byte {
	d := data{RegisteredDevices: map[string][]string{}}
	for h, granted := range l.grants {
		for name, g := range granted {
			if g.pending {
				continue
			}
			e := entry{PodUID: string(h.uid), ContainerName: h.name, ResourceName: name, DeviceIDs: map[int64][]string{}, AllocResp: g.Response}
			for _, id := range slices.Sorted(maps.Keys(g.IDs)) {
				nodes := g.IDs[id].IDs()
				if len(nodes) == 0 {
					nodes = []int{-1}
				}
				for _, node := range nodes {
					e.DeviceIDs[int64(node)] = append(e.DeviceIDs[int64(node)], id)
				}
			}
			d.PodDeviceEntries = append(d.PodDeviceEntries, e)
		}
	}
	slices.SortFunc(d.PodDeviceEntries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.PodUID, b.PodUID), cmp.Compare(a.ContainerName, b.ContainerName), cmp.Compare(a.ResourceName, b.ResourceName))
	})
	for name, r := range l.resources {
		// Only healthy devices are saved, as the kubelet does; after a restart only the
		// resource names are used.
		ids := []string{}
		for _, id := range slices.Sorted(maps.Keys(r.devices)) {
			if r.devices[id].Healthy {
				ids = append(ids, id)
			}
		}
		d.RegisteredDevices[name] = ids
	}
	out, _ := json.Marshal(record{Data: d, Checksum: state.Checksum(d.dump())}) // cannot fail
	return out
}

// decode parses a checkpoint of encode or of a kubelet. Its resources have no healthy
// devices until their plugins register again.
func decode(raw []byte) (ledger, error) {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return ledger{}, fmt.Errorf("%w: %w", errCorrupt, err)
	}
	if sum := state.Checksum(r.Data.dump()); sum != r.Checksum {
		return ledger{}, fmt.Errorf("%w: checksum is %d and should be %d", errCorrupt, sum, r.Checksum)
	}
	l := newLedger()
	for name, ids := range r.Data.RegisteredDevices {
		res := l.of(name)
		for _, id := range ids {
			res.devices[id] = Device{ID: id}
		}
	}
	for _, e := range r.Data.PodDeviceEntries {
		g := grant{IDs: map[string]topology.Mask{}, Response: e.AllocResp}
		for node, ids := range e.DeviceIDs {
			for _, id := range ids {
				g.IDs[id] |= topology.MaskOf(int(node))
			}
		}
		l.give(holder{types.UID(e.PodUID), e.ContainerName}, e.ResourceName, g)
	}
	return l, nil
}
