package dra

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
)

// StateFile is the name of the kubelet's checkpoint file in its root directory.
const StateFile = "dra_manager_state"

// file is the format of the kubelet's file.
type file struct {
	Data     string // JSON
	Checksum uint32 // CRC-32 (IEEE) of Data
}

type fileData struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`

	ClaimInfoStateList []fileClaim
}

type fileClaim struct {
	ClaimUID    string
	ClaimName   string
	Namespace   string
	PodUIDs     map[string]struct{}
	DriverState map[string]fileDriver

	Allocation string `json:",omitempty"` // a kubelet does not write it, and ignores it
}

// A kubelet does not write the fields of fileDriver other than Devices, and ignores them.
type fileDriver struct {
	Devices       []fileDevice
	Prepared      bool `json:",omitempty"`
	SkipUnprepare bool `json:",omitempty"`
	Uncalled      bool `json:",omitempty"`
}

type fileDevice struct {
	PoolName     string
	DeviceName   string
	ShareID      *string `json:",omitempty"`
	RequestNames []string
	CDIDeviceIDs []string
}

const (
	fileKind       = "DRACheckpoint"
	fileAPIVersion = "checkpoint.dra.kubelet.k8s.io/v1"
)

// encode returns the claims in the kubelet's format.
func (l ledger) encode() []byte {
	data := fileData{Kind: fileKind, APIVersion: fileAPIVersion, ClaimInfoStateList: []fileClaim{}}
	for _, key := range slices.SortedFunc(maps.Keys(l), compareKeys) {
		s := l[key]
		c := fileClaim{
			ClaimUID: string(s.ref.UID), ClaimName: s.ref.Name, Namespace: s.ref.Namespace,
			PodUIDs: map[string]struct{}{}, DriverState: map[string]fileDriver{}, Allocation: s.allocation,
		}
		for uid := range s.pods {
			c.PodUIDs[string(uid)] = struct{}{}
		}
		for name, d := range s.drivers {
			out := fileDriver{Prepared: d.prepared, SkipUnprepare: d.skipUnprepare, Uncalled: d.uncalled}
			for _, device := range d.devices {
				f := fileDevice{PoolName: device.Pool, DeviceName: device.Name, RequestNames: device.Requests, CDIDeviceIDs: device.CDI}
				if device.ShareID != "" {
					f.ShareID = &device.ShareID
				}
				out.Devices = append(out.Devices, f)
			}
			c.DriverState[name] = out
		}
		data.ClaimInfoStateList = append(data.ClaimInfoStateList, c)
	}
	text, _ := json.Marshal(data) // cannot fail
	out, _ := json.Marshal(file{string(text), crc32.ChecksumIEEE(text)})
	return out
}

func compareKeys(a, b claimKey) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}

// decode parses a checkpoint of encode or of a kubelet. A kubelet adds the drivers of a
// claim before it calls them, so that a driver without devices counts as not prepared.
func decode(raw []byte) (ledger, error) {
	var f file
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrKubelet, err)
	}
	if sum := crc32.ChecksumIEEE([]byte(f.Data)); sum != f.Checksum {
		return nil, fmt.Errorf("%w: checksum is %d and should be %d", checkpoint.ErrKubelet, f.Checksum, sum)
	}
	var data fileData
	if err := json.Unmarshal([]byte(f.Data), &data); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrKubelet, err)
	}
	if data.Kind != fileKind || data.APIVersion != fileAPIVersion {
		return nil, fmt.Errorf("%w: kind %q and apiVersion %q: want %q and %q", checkpoint.ErrKubelet, data.Kind, data.APIVersion, fileKind, fileAPIVersion)
	}
	l := ledger{}
	for _, c := range data.ClaimInfoStateList {
		ref := ClaimRef{c.Namespace, c.ClaimName, types.UID(c.ClaimUID)}
		if ref.Namespace == "" || ref.Name == "" || ref.UID == "" || len(c.PodUIDs) == 0 || l[keyOf(ref)] != nil {
			return nil, fmt.Errorf("%w: claim %q is incomplete or occurs twice", checkpoint.ErrKubelet, ref)
		}
		s := &claimState{ref: ref, pods: map[types.UID]bool{}, drivers: map[string]driverState{}, allocation: c.Allocation}
		for uid := range c.PodUIDs {
			s.pods[types.UID(uid)] = true
		}
		for name, d := range c.DriverState {
			state := driverState{prepared: d.Prepared || len(d.Devices) > 0, skipUnprepare: d.SkipUnprepare, uncalled: d.Uncalled, attempted: !d.Uncalled}
			for _, device := range d.Devices {
				out := Device{Pool: device.PoolName, Name: device.DeviceName, Requests: device.RequestNames, CDI: device.CDIDeviceIDs}
				if device.ShareID != nil {
					out.ShareID = *device.ShareID
				}
				state.devices = append(state.devices, out)
			}
			s.drivers[name] = state
		}
		l[keyOf(ref)] = s
	}
	return l, nil
}
