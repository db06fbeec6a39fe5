package podconfig_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// For every pod there is a result or an error, never a panic, and no result is
// privileged or unconfined unless the pod requests it.
func FuzzContainer(f *testing.F) {
	files, err := filepath.Glob("testdata/pods/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if text, err = yaml.YAMLToJSON(text); err == nil {
			f.Add(text, byte(i))
		}
	}
	f.Add([]byte(`{"spec":{"containers":[{"resources":{"limits":{"hugepages-":"1","memory":"-1","cpu":"99999999999999999999"}}}]}}`), byte(255))
	f.Fuzz(func(t *testing.T, text []byte, bits byte) {
		pod := new(v1.Pod)
		if json.Unmarshal(text, pod) != nil {
			return
		}
		in := podconfig.PodInput{Pod: pod, Handler: podconfig.RuntimeHandler{UserNamespaces: bits&1 != 0, RecursiveReadOnly: bits&2 != 0}, Node: podconfig.Node{
			CgroupVersion: int(bits>>2) % 3, MemoryBytes: int64(bits) << 20, HugePageSizes: []int64{0, 2 << 20}, Security: podconfig.Security{SeccompDefault: true},
			MemoryQoS: podconfig.MemoryQoS{Enabled: bits&4 != 0, Reserve: cgroups.Reservation(bits & 3), ThrottlingFactor: float64(bits&3) / 2},
			Swap:      podconfig.Swap{Controller: bits&8 != 0, Limited: bits&16 != 0, Bytes: int64(bits) << 10},
		}}
		if bits&32 != 0 {
			in.UserNamespace = &runtimeapi.UserNamespace{Uids: []*runtimeapi.IDMapping{nil}, Gids: []*runtimeapi.IDMapping{nil}}
		}
		_, _ = podconfig.Sandbox(in, 1)
		new(podconfig.Sysctls).Admit(t.Context(), pod)
		podconfig.AdmitAppArmor(pod, false)
		podconfig.AdmitGroups(pod, false)
		podconfig.DependsOnHandler(pod)
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			inst := podconfig.ContainerInput{Container: c, Env: c.Env, RestartCount: int32(bits)}
			for range c.VolumeMounts {
				inst.Volumes = append(inst.Volumes, podconfig.Volume{HostPath: "/v"})
			}
			for range c.VolumeDevices {
				inst.BlockDevices = append(inst.BlockDevices, podconfig.BlockDevice{HostPath: "/d"})
			}
			config, err := podconfig.Container(in, inst)
			if err != nil {
				continue
			}
			sc := config.Linux.SecurityContext
			asked := c.SecurityContext
			if sc.Privileged && (asked == nil || asked.Privileged == nil || !*asked.Privileged) {
				t.Error("privileged, but not requested")
			}
			if len(sc.MaskedPaths) == 0 && (asked == nil || asked.ProcMount == nil || *asked.ProcMount != v1.UnmaskedProcMount) {
				t.Error("nothing is hidden")
			}
			if r := config.Linux.Resources; r.CpuShares < 2 || r.OomScoreAdj < -997 || r.OomScoreAdj > 1000 || r.CpuQuota < 0 {
				t.Errorf("out of range: %v", r)
			}
		}
	})
}
