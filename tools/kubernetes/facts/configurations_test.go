package facts

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	metricsapi "k8s.io/component-base/metrics/api/v1"
	"k8s.io/klog/v2"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	"k8s.io/kubernetes/pkg/kubelet/kubeletconfig/util/codec"
	"k8s.io/kubernetes/pkg/kubelet/logs"
	"k8s.io/kubernetes/pkg/kubelet/sysctl"
	"sigs.k8s.io/yaml"
)

// An outcome is what a kubelet does with a configuration.
type outcome struct {
	Warning string   `json:"warning,omitempty"` // of decoding
	Errors  []string `json:"errors,omitempty"`  // any of them prevents the start
}

// The configurations and the validations are in kube/kubelet/config/testdata, where a test
// compares the validations with those of that package.
func TestTheValidationsOfTheKubelet(t *testing.T) {
	dir := "kube/kubelet/config/testdata/"
	text, err := os.ReadFile(filepath.Join("..", "..", "..", filepath.FromSlash(dir), "configurations.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var configurations map[string]string
	if err := yaml.UnmarshalStrict(text, &configurations); err != nil {
		t.Fatal(err)
	}
	gates := utilfeature.DefaultMutableFeatureGate
	validations := map[string]outcome{}
	for name, fields := range configurations {
		// The checks read the gates of the process.
		utilfeature.DefaultMutableFeatureGate = gates.DeepCopy()
		utilfeature.DefaultFeatureGate = utilfeature.DefaultMutableFeatureGate
		v := validate(t, complete(t, fields))
		slices.Sort(v.Errors)
		validations[name] = v
	}
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = gates, gates
	var out strings.Builder
	fmt.Fprintf(&out, "# The validations of kubelet %s about configurations.yaml, by \"go test ./facts -update\" in tools/kubernetes.\n", version(t))
	for _, name := range slices.Sorted(maps.Keys(validations)) {
		one, err := yaml.Marshal(map[string]outcome{name: validations[name]})
		if err != nil {
			t.Fatal(err)
		}
		out.Write(one)
	}
	compare(t, dir+"validations.yaml", out.String())
}

// complete adds the version and the kind, and converts flow style to JSON, as which a kubelet
// reads it. Cgroup v1 is accepted, so that the validations do not depend on the machine.
func complete(t *testing.T, fields string) []byte {
	t.Helper()
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1, kind: KubeletConfiguration, failCgroupV1: false, "
	flow, ok := strings.CutPrefix(fields, "{")
	if !ok {
		return []byte(strings.ReplaceAll(head, ", ", "\n") + fields)
	}
	text, err := yaml.YAMLToJSON([]byte("{" + head + flow))
	if err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return text
}

func validate(t *testing.T, text []byte) (v outcome) {
	var gates struct{ FeatureGates map[string]bool }
	if err := yaml.Unmarshal(text, &gates); err == nil {
		// A kubelet panics with this error.
		if err := utilfeature.DefaultMutableFeatureGate.DeepCopy().SetFromMap(gates.FeatureGates); err != nil {
			v.Errors = texts(err)
			return v
		}
	}
	_, codecs, err := scheme.NewSchemeAndCodecs(serializer.EnableStrict)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := codecs.UniversalDecoder().Decode(text, nil, nil); runtime.IsStrictDecodingError(err) {
		v.Warning = err.Error()
	}
	k, err := codec.DecodeKubeletConfiguration(t.Context(), codecs, text)
	if err != nil {
		v.Errors = []string{err.Error()}
		return v
	}
	if k.EvictionHard == nil {
		k.EvictionHard = eviction.DefaultEvictionHard
	}
	if err := validation.ValidateKubeletConfiguration(k, utilfeature.DefaultFeatureGate); err != nil {
		// The version of this program is not that of Kubernetes.
		v.Errors = slices.DeleteFunc(texts(err), func(text string) bool { return strings.HasPrefix(text, "invalid showHiddenMetricsForVersion") })
	}
	if err := metricsapi.ValidateShowHiddenMetricsVersionForKubeletBackwardCompatOnly(semver.MustParse(version(t)), k.ShowHiddenMetricsForVersion); err != nil {
		v.Errors = append(v.Errors, err.Error())
	}
	if len(v.Errors) > 0 {
		return v
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(k.FeatureGates); err != nil {
		t.Fatal(err)
	}
	if err := start(k); err != nil {
		v.Errors = []string{err.Error()}
	}
	return v
}

// texts returns the texts of an error, or of the errors that it is made of.
func texts(err error) (out []string) {
	var all utilerrors.Aggregate
	if !errors.As(err, &all) {
		return []string{err.Error()}
	}
	for _, err := range all.Errors() {
		out = append(out, err.Error())
	}
	return out
}

// start returns the error of the first check that cmd/kubelet and package kubelet make of a
// valid configuration, as far as they are exported and do not depend on the machine.
func start(k *kubeletconfig.KubeletConfiguration) error {
	if _, err := cliflag.TLSCipherSuites(k.TLSCipherSuites); err != nil {
		return err
	}
	if _, err := cliflag.TLSVersion(k.TLSMinVersion); err != nil {
		return err
	}
	if _, err := cliflag.TLSCurvePreferences(k.TLSCurvePreferences); err != nil {
		return err
	}
	if _, err := eviction.ParseThresholdConfig(nil, k.EvictionHard, nil, nil, nil); err != nil {
		return err
	}
	if _, err := cm.ParseQOSReserved(k.QOSReserved); err != nil {
		return fmt.Errorf("--qos-reserved value failed to parse: %w", err)
	}
	if k.TopologyManagerPolicy != topologymanager.PolicyNone {
		if _, err := topologymanager.NewPolicyOptions(klog.Background(), k.TopologyManagerPolicyOptions); err != nil {
			return err
		}
	}
	switch k.CPUManagerPolicy {
	case string(cpumanager.PolicyNone):
		if _, err := cpumanager.NewNonePolicy(k.CPUManagerPolicyOptions); err != nil {
			return fmt.Errorf("new none policy error: %w", err)
		}
	case string(cpumanager.PolicyStatic):
		if _, err := cpumanager.NewStaticPolicyOptions(k.CPUManagerPolicyOptions); err != nil {
			return fmt.Errorf("new static policy error: %w", err)
		}
	default:
		return fmt.Errorf("unknown policy: %q", k.CPUManagerPolicy)
	}
	if k.MemoryManagerPolicy != "None" && k.MemoryManagerPolicy != "Static" { // on Linux
		return fmt.Errorf("unknown policy: %q", k.MemoryManagerPolicy)
	}
	if k.SyncFrequency.Duration <= 0 {
		return fmt.Errorf("invalid sync frequency %d", k.SyncFrequency.Duration)
	}
	if _, err := eviction.ParseThresholdConfig(k.EnforceNodeAllocatable, k.EvictionHard, k.EvictionSoft, k.EvictionSoftGracePeriod, k.EvictionMinimumReclaim); err != nil {
		return err
	}
	switch k.ConfigMapAndSecretChangeDetectionStrategy {
	case kubeletconfig.WatchChangeDetectionStrategy, kubeletconfig.TTLCacheChangeDetectionStrategy, kubeletconfig.GetChangeDetectionStrategy:
	default:
		return fmt.Errorf("unknown configmap and secret manager mode: %v", k.ConfigMapAndSecretChangeDetectionStrategy)
	}
	if err := newLogManager(k); err != nil {
		return fmt.Errorf("failed to initialize container log manager: %v", err)
	}
	_, err := sysctl.NewAllowlist(k.AllowedUnsafeSysctls)
	return err
}

// newLogManager calls logs.NewContainerLogManager, which from 1.38 on has a logger as its first parameter.
func newLogManager(k *kubeletconfig.KubeletConfiguration) error {
	f := reflect.ValueOf(logs.NewContainerLogManager)
	args := []reflect.Value{
		reflect.Zero(f.Type().In(f.Type().NumIn() - 6)), reflect.Zero(f.Type().In(f.Type().NumIn() - 5)),
		reflect.ValueOf(k.ContainerLogMaxSize), reflect.ValueOf(int(k.ContainerLogMaxFiles)),
		reflect.ValueOf(int(k.ContainerLogMaxWorkers)), reflect.ValueOf(k.ContainerLogMonitorInterval),
	}
	if f.Type().NumIn() == 7 {
		args = append([]reflect.Value{reflect.Zero(f.Type().In(0))}, args...)
	}
	err, _ := f.Call(args)[1].Interface().(error)
	return err
}
