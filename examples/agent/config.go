package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// honoured are the fields of a KubeletConfiguration that this agent acts on, as
// the file spells them. A name stands for all that is below it; one with a dot is
// one field of a field. All others are named in a warning: what a file asks for
// and does not get should not be found out in production.
//
// Who makes use of a field adds it here, its default to defaults below, and its
// flag, if it has one, to declare in flags.go.
var honoured = []string{
	"apiVersion", "kind",

	// flags.go
	"containerRuntimeEndpoint", "staticPodPath", "podLogsDir",

	// sources.go
	"staticPodURL", "staticPodURLHeader", "fileCheckFrequency", "httpCheckFrequency",

	// volumes.go
	"volumeStatsAggPeriod",

	// images.go
	"imageGCHighThresholdPercent", "imageGCLowThresholdPercent", "imageMinimumGCAge", "imageMaximumGCAge",

	// cluster.go
	"nodeStatusUpdateFrequency", "nodeStatusReportFrequency", "nodeStatusMaxImages", "nodeLeaseDurationSeconds",
	"registerNode", "registerWithTaints", "providerID", "rotateCertificates",
	"kubeAPIQPS", "kubeAPIBurst", "eventRecordQPS", "eventBurst", "configMapAndSecretChangeDetectionStrategy",

	// cgroups.go
	"cgroupsPerQOS", "cgroupDriver", "cgroupRoot", "systemReserved", "kubeReserved", "systemReservedCgroup", "kubeReservedCgroup",
	"reservedSystemCPUs", "enforceNodeAllocatable", "qosReserved", "maxPods", "podPidsLimit", "cpuCFSQuota",
	"cpuCFSQuotaPeriod", "failSwapOn", "failCgroupV1", "protectKernelDefaults", "memorySwap", "singleProcessOOMKill",
	"memoryThrottlingFactor", "memoryReservationPolicy", "featureGates.MemoryQoS",

	// managers.go
	"cpuManagerPolicy", "cpuManagerPolicyOptions", "memoryManagerPolicy", "reservedMemory",
	"topologyManagerPolicy", "topologyManagerScope", "topologyManagerPolicyOptions",

	// evict.go
	"evictionHard", "evictionSoft", "evictionSoftGracePeriod", "evictionMinimumReclaim", "evictionPressureTransitionPeriod",
	"evictionMaxPodGracePeriod", "mergeDefaultEvictionSettings", "kernelMemcgNotification", "localStorageCapacityIsolation",

	// logs.go
	"containerLogMaxSize", "containerLogMaxFiles", "containerLogMaxWorkers", "containerLogMonitorInterval",
}

// maxConfig bounds the file: a KubeletConfiguration has some hundred lines.
const maxConfig = 1 << 20

// readConfig returns the KubeletConfiguration of a file, YAML or JSON, with
// defaults, and which of its fields this agent does nothing with. What the type
// does not have, or has twice, is an error.
func readConfig(path string) (kubeletconfig.KubeletConfiguration, []string, error) {
	var cfg kubeletconfig.KubeletConfiguration
	text, err := os.ReadFile(path)
	if err != nil {
		return cfg, nil, fmt.Errorf("--config: %w", err)
	}
	if len(text) > maxConfig {
		return cfg, nil, fmt.Errorf("--config: %s has %d bytes, more than any KubeletConfiguration", path, len(text))
	}
	cfg, ignored, err := decodeConfig(text)
	if err != nil {
		return cfg, nil, fmt.Errorf("--config: %s: %w", path, err)
	}
	return cfg, ignored, nil
}

func decodeConfig(text []byte) (cfg kubeletconfig.KubeletConfiguration, ignored []string, err error) {
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return cfg, nil, err
	}
	strict, err := kjson.UnmarshalStrict(object, &cfg)
	if err := errors.Join(append(strict, err)...); err != nil {
		return cfg, nil, err
	}
	if cfg.Kind != "KubeletConfiguration" || cfg.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return cfg, nil, fmt.Errorf("apiVersion %q, kind %q: want %s, KubeletConfiguration", cfg.APIVersion, cfg.Kind, kubeletconfig.SchemeGroupVersion)
	}
	var fields map[string]any
	if err := json.Unmarshal(object, &fields); err != nil {
		return cfg, nil, err
	}
	defaults(&cfg)
	return cfg, unhonoured("", fields), nil
}

// unhonoured returns the fields that nothing is done with, sorted.
func unhonoured(prefix string, fields map[string]any) []string {
	var names []string
	for field, value := range fields {
		name := prefix + field
		if slices.Contains(honoured, name) {
			continue
		}
		below, isObject := value.(map[string]any)
		if isObject && slices.ContainsFunc(honoured, func(h string) bool { return strings.HasPrefix(h, name+".") }) {
			names = append(names, unhonoured(name+".", below)...)
			continue
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// defaults sets the fields that the file left out to what the kubelet has for
// them, as far as this agent reads them (section 0.2).
func defaults(cfg *kubeletconfig.KubeletConfiguration) {
	orElse(&cfg.CgroupsPerQOS, true)
	orElse(&cfg.CPUCFSQuota, true)
	orElse(&cfg.CPUCFSQuotaPeriod, metav1.Duration{Duration: 100 * time.Millisecond})
	orElse(&cfg.FailSwapOn, true)
	orElse(&cfg.FailCgroupV1, false) // this agent is tried on v1 as well
	orElse(&cfg.PodPidsLimit, -1)
	orElse(&cfg.MemoryThrottlingFactor, 0.9)
	if cfg.EnforceNodeAllocatable == nil {
		cfg.EnforceNodeAllocatable = []string{"pods"}
	}
	if cfg.MaxPods == 0 {
		cfg.MaxPods = 110
	}
}

// orElse sets *field where the file said nothing.
func orElse[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
