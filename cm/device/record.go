package device

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// stateFile is the name of the kubelet's checkpoint file in the directory of the plugins.
const stateFile = "kubelet_internal_checkpoint"

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

// Dump implements checkpoint.KubeletRecord.
func (r *record) Dump() string {
	var b strings.Builder
	strs := func(list []string) { checkpoint.DumpList(&b, list, func(s string) { b.WriteString(s) }) }
	b.WriteString("(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)")
	checkpoint.DumpList(&b, r.Data.PodDeviceEntries, func(e entry) {
		fmt.Fprintf(&b, "{PodUID:(string)%s ContainerName:(string)%s ResourceName:(string)%s DeviceIDs:(checkpoint.DevicesPerNUMA)", e.PodUID, e.ContainerName, e.ResourceName)
		checkpoint.DumpMap(&b, e.DeviceIDs, strs)
		b.WriteString(" AllocResp:([]uint8)")
		checkpoint.DumpList(&b, e.AllocResp, func(n byte) { b.WriteString(strconv.Itoa(int(n))) })
		b.WriteByte('}')
	})
	b.WriteString(" RegisteredDevices:(map[string][]string)")
	checkpoint.DumpMap(&b, r.Data.RegisteredDevices, strs)
	b.WriteByte('}')
	return b.String()
}

// Sum implements checkpoint.KubeletRecord.
func (r *record) Sum() *uint64 { return &r.Checksum }

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
	return checkpoint.EncodeKubelet(&record{Data: d})
}

// decode parses a checkpoint of encode or of a kubelet. Its resources have no healthy
// devices until their plugins register again.
func decode(raw []byte) (ledger, error) {
	var r record
	if err := checkpoint.DecodeKubelet(raw, &r); err != nil {
		return ledger{}, err
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
