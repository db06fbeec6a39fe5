package kubelet

import (
	"fmt"
	"math"
	"os"
	goruntime "runtime"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/admission"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
)

// A capacity has the resources of the machine.
type capacity struct {
	total, allocatable v1.ResourceList
	reserved           cm.Reserved
}

// readCapacity reads the resources of the machine and subtracts the reserved ones.
func readCapacity(b base) (c capacity, err error) {
	if c.total, err = cm.ReadCapacity(os.DirFS("/")); err != nil {
		return c, err
	}
	if _, ok := c.total[v1.ResourceCPU]; !ok { // not Linux
		c.total[v1.ResourceCPU] = *resource.NewQuantity(int64(goruntime.NumCPU()), resource.DecimalSI)
	}
	if disk, err := stats.Statfs(b.cfg.RootDir); err == nil {
		c.total[v1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(min(disk.Capacity, math.MaxInt64)), resource.BinarySI)
	}
	if c.reserved, err = reservedOf(b.k, c.total); err != nil {
		return c, err
	}
	c.allocatable = cm.Allocatable(c.total, c.reserved)
	return c, cm.CheckReserved(c.total, c.reserved)
}

func reservedOf(k *kubeletconfig.KubeletConfiguration, total v1.ResourceList) (r cm.Reserved, err error) {
	if r.System, err = amounts("systemReserved", k.SystemReserved); err != nil {
		return r, err
	}
	if r.Kube, err = amounts("kubeReserved", k.KubeReserved); err != nil {
		return r, err
	}
	hard := eviction.Settings{Hard: k.EvictionHard}.WithDefaults(goruntime.GOOS, deref(k.MergeDefaultEvictionSettings)).Hard
	if r.Eviction, err = cm.EvictionReserve(hard, total); err != nil {
		return r, err
	}
	return r.ReserveCPUs(k.ReservedSystemCPUs)
}

func amounts(field string, in map[string]string) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for name, text := range in {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, cm.ResourcePID:
		default:
			return nil, fmt.Errorf("%s: %q cannot be reserved; cpu, memory, ephemeral-storage and pid can", field, name)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s: %s: invalid amount %q", field, name, text)
		}
		out[v1.ResourceName(name)] = q
	}
	return out, nil
}

func policyOf(k *kubeletconfig.KubeletConfiguration, total v1.ResourceList) (cm.Policy, error) {
	p := cm.Policy{NoCPUQuota: !*k.CPUCFSQuota, CPUPeriod: k.CPUCFSQuotaPeriod.Duration, PodPids: *k.PodPidsLimit}
	for name := range total {
		if size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
			if q, err := resource.ParseQuantity(size); err == nil {
				p.HugePageSizes = append(p.HugePageSizes, q.Value())
			}
		}
	}
	if gate(k, "MemoryQoS") && k.MemoryReservationPolicy == "TieredReservation" {
		p.Reserve = cm.ReserveTiered
	}
	for name, text := range k.QOSReserved {
		percent, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
		if err != nil {
			return p, fmt.Errorf("qosReserved: %s: invalid percentage %q", name, text)
		}
		if p.QOSReserved == nil {
			p.QOSReserved = map[v1.ResourceName]int64{}
		}
		p.QOSReserved[v1.ResourceName(name)] = percent
	}
	return p, nil
}

// admissionNode returns the node that pods must fit. Ephemeral storage is not checked, nor
// is memory where the machine does not report it.
func admissionNode(b base, allocatable v1.ResourceList) admission.Node {
	n := admission.Node{Name: b.cfg.NodeName, OS: goruntime.GOOS, ResourceClaims: supportsClaims(b), Labels: map[string]string{
		v1.LabelHostname: b.cfg.NodeName, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH,
	}}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	n.Allocatable = v1.ResourceList{
		v1.ResourceCPU:              quantity(int64(goruntime.NumCPU())),
		v1.ResourcePods:             quantity(int64(b.cfg.maxPods())),
		v1.ResourceEphemeralStorage: quantity(math.MaxInt64),
		v1.ResourceMemory:           quantity(math.MaxInt64),
	}
	for name, q := range allocatable {
		if name != v1.ResourceEphemeralStorage {
			n.Allocatable[name] = q
		}
	}
	return n
}
