package machine

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	goruntime "runtime"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

// A capacity has the resources of the machine.
type capacity struct {
	Total, Allocatable v1.ResourceList
	reserved           cm.Reserved
}

// readCapacity reads the resources of the machine and subtracts the reserved ones.
func readCapacity(b stores.Base) (c capacity, err error) {
	if c.Total, err = cm.ReadCapacity(os.DirFS("/")); err != nil {
		return c, err
	}
	if _, ok := c.Total[v1.ResourceCPU]; !ok { // not Linux
		c.Total[v1.ResourceCPU] = *resource.NewQuantity(int64(goruntime.NumCPU()), resource.DecimalSI)
	}
	if disk, err := stats.Statfs(b.Config.RootDir); err == nil && stores.IsolatesStorage(b.Configuration) {
		c.Total[v1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(min(disk.Capacity, math.MaxInt64)), resource.BinarySI)
	}
	if c.reserved, err = reservedOf(b.Configuration, c.Total); err != nil {
		return c, err
	}
	if err := checkReservedCPUs(b.Configuration.ReservedSystemCPUs, os.DirFS("/")); err != nil {
		return c, err
	}
	c.Allocatable = cm.Allocatable(c.Total, c.reserved)
	return c, cm.CheckReserved(c.Total, c.reserved)
}

// checkReservedCPUs returns an error if a CPU of the list is not online.
func checkReservedCPUs(list string, root fs.FS) error {
	if list == "" {
		return nil
	}
	reserved, err := topology.ParseCPUs(list)
	if err != nil {
		return fmt.Errorf("unable to parse reserved-cpus list: %w", err)
	}
	machine, err := topology.Read(root)
	if err != nil {
		return fmt.Errorf("unable to discover CPU topology info: %w", err)
	}
	if online := machine.All(); !reserved.IsSubsetOf(online) {
		return fmt.Errorf("reserved-cpus: %s is not a subset of online-cpus: %s", list, online)
	}
	return nil
}

func reservedOf(k *kubeletconfig.KubeletConfiguration, total v1.ResourceList) (r cm.Reserved, err error) {
	if r.System, err = stores.Amounts("--system-reserved", k.SystemReserved); err != nil {
		return r, err
	}
	if r.Kube, err = stores.Amounts("--kube-reserved", k.KubeReserved); err != nil {
		return r, err
	}
	hard := eviction.Settings{Hard: k.EvictionHard}.WithDefaults(goruntime.GOOS, stores.Deref(k.MergeDefaultEvictionSettings)).Hard
	if r.Eviction, err = cm.EvictionReserve(hard, total); err != nil {
		return r, err
	}
	return r.ReserveCPUs(k.ReservedSystemCPUs)
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
	if config.Enabled(k, "MemoryQoS") {
		p.MemoryQoS, p.ThrottlingFactor, p.PageSize = true, stores.Deref(k.MemoryThrottlingFactor), int64(os.Getpagesize())
		if k.MemoryReservationPolicy == "TieredReservation" {
			p.Reserve = cgroups.ReserveTiered
		}
	}
	var err error
	p.QOSReserved, err = stores.QosReserved(k.QOSReserved)
	return p, err
}

// admissionNode returns the node that pods must fit. Memory and ephemeral storage are not
// checked where the machine does not report them. Without local storage isolation no ephemeral
// storage is available, as in the kubelet.
func admissionNode(b stores.Base, allocatable v1.ResourceList) admission.Node {
	n := admission.Node{Name: b.Config.NodeName, OS: goruntime.GOOS, ResourceClaims: volumes.SupportsClaims(b), Labels: map[string]string{
		v1.LabelHostname: b.Config.NodeName, v1.LabelOSStable: goruntime.GOOS, v1.LabelArchStable: goruntime.GOARCH,
	}}
	quantity := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	n.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    quantity(int64(goruntime.NumCPU())),
		v1.ResourcePods:   quantity(int64(stores.MaxPods(b.Config))),
		v1.ResourceMemory: quantity(math.MaxInt64),
	}
	if stores.IsolatesStorage(b.Configuration) {
		n.Allocatable[v1.ResourceEphemeralStorage] = quantity(math.MaxInt64)
	}
	maps.Copy(n.Allocatable, allocatable)
	return n
}
