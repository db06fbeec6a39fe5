package config

import (
	"strings"

	"github.com/kubeparts/kubeparts/runtime"
)

// An effect is what package kubelet does with a field of a KubeletConfiguration.
type effect int

const (
	honored effect = iota // the field has the same effect as in the kubelet
	ignored               // it has no effect, and causes a warning
	refused               // it is an error, since ignoring it would have another effect than intended
)

// A field describes one field of a KubeletConfiguration, or all fields below one.
type field struct {
	name      string // in a file, with a dot before the name of a nested field
	effect    effect
	doc       string // a noun phrase; the reason if the field is ignored or refused
	def       string // the default, in YAML; empty: the zero value
	reported  string // the value in YAML that /configz has instead of zero: the default of the kubelet, or what zero selects
	flag      string // of the kubelet; empty: there is none
	accepted  string // the value, in YAML, that is neither warned about nor refused
	separator string // between the names and values of a flag that is a map; empty: "="

	since int // the minor version of Kubernetes that adds the field; 0: the type of any has it

	confidential bool // the value, or a part of it, may be a credential
}

// fields yields every field of a KubeletConfiguration of this minor version.
func fields(yield func(field) bool) {
	for _, g := range groups {
		for _, f := range g.fields {
			if f.since <= runtime.KubernetesMinor && !yield(f) {
				return
			}
		}
	}
}

type group struct {
	title  string
	fields []field
}

// groups is the only place that describes fields: defaults, warnings, errors, flags and
// docs/configuration.md are made from it. To rewrite that file, run
// go test ./kube/kubelet/config -update.
var groups = []group{
	{"Sources of pods", []field{
		{name: "staticPodPath", doc: "file or directory of manifests of static pods", flag: "pod-manifest-path"},
		{name: "fileCheckFrequency", doc: "interval at which staticPodPath is read where changes are not reported by the system", def: "20s", flag: "file-check-frequency"},
		{name: "staticPodURL", doc: "URL of a manifest, or of a list of them", flag: "manifest-url", confidential: true},
		{name: "staticPodURLHeader", doc: "headers of requests for staticPodURL, as key:value,…; the flag may be repeated", flag: "manifest-url-header", separator: ":", confidential: true},
		{name: "httpCheckFrequency", doc: "interval at which staticPodURL is requested", def: "20s", flag: "http-check-frequency"},
		{name: "maxPods", doc: "largest number of pods on the node", def: "110", flag: "max-pods"},
		{name: "podsPerCore", doc: "largest number of pods per CPU, up to maxPods; 0: no limit", flag: "pods-per-core"},
		{name: "runOnce", effect: refused, doc: "the kubelet runs until it is stopped; a pod of a manifest with restartPolicy Never terminates by itself", flag: "runonce"},
	}},
	{"Containers and their runtime", []field{
		{name: "containerRuntimeEndpoint", doc: "address of the CRI runtime, such as unix:///run/containerd/containerd.sock; process runs pods as plain processes", flag: "container-runtime-endpoint"},
		{name: "imageServiceEndpoint", doc: "address of the CRI image service, if it differs from containerRuntimeEndpoint", flag: "image-service-endpoint"},
		{name: "runtimeRequestTimeout", doc: "timeout of CRI calls", def: "2m", flag: "runtime-request-timeout"},
		{name: "podLogsDir", doc: "directory of container logs; by default /var/log/pods, for plain processes log/pods in the root directory", flag: "pod-logs-dir"},
		{name: "containerLogMaxSize", doc: "size at which a log is rotated", def: "10Mi", flag: "container-log-max-size"},
		{name: "containerLogMaxFiles", doc: "largest number of files of one log", def: "5", flag: "container-log-max-files"},
		{name: "containerLogMaxWorkers", doc: "number of logs that are rotated concurrently", def: "1"},
		{name: "containerLogMonitorInterval", doc: "interval at which sizes of logs are read", def: "10s"},
		{name: "syncFrequency", doc: "interval at which a pod is synced without an event", def: "1m", flag: "sync-frequency"},
		{name: "crashLoopBackOff.maxContainerRestartPeriod", doc: "longest delay of a container restart, 1s to 5m; by default 5m", reported: "5m"},
		{name: "seccompDefault", doc: "containers without a seccomp profile use RuntimeDefault", def: "false", flag: "seccomp-default"},
		{name: "allowedUnsafeSysctls", doc: "sysctls that pods may set in addition to the safe ones", flag: "allowed-unsafe-sysctls"},
		{name: "defaultPodSysctls", effect: ignored, doc: "pods have the sysctls of their spec only"},
		{name: "userNamespaces.idsPerPod", doc: "user and group IDs of a pod with a user namespace, a multiple of 65536; by default 65536"},
		{name: "hairpinMode", effect: ignored, doc: "the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)", flag: "hairpin-mode", reported: "promiscuous-bridge"},
		{name: "podCIDR", effect: ignored, doc: "the CNI plugin allocates addresses of pods", flag: "pod-cidr"},
	}},
	{"DNS of pods", []field{
		{name: "clusterDNS", doc: "name servers of pods; by default those of resolvConf", flag: "cluster-dns"},
		{name: "clusterDomain", doc: "domain of the services of the cluster, which pods search", flag: "cluster-domain"},
		{name: "resolvConf", doc: "file with the name servers of the machine; by default /etc/resolv.conf; empty: none", flag: "resolv-conf", reported: "/etc/resolv.conf"},
	}},
	{"Images", []field{
		{name: "registryPullQPS", doc: "image pulls per second; 0: no limit", def: "5", flag: "registry-qps"},
		{name: "registryBurst", doc: "image pulls that may start at the same time", def: "10", flag: "registry-burst"},
		{name: "serializeImagePulls", doc: "pull one image at a time; by default true, unless maxParallelImagePulls is greater than 1", flag: "serialize-image-pulls"},
		{name: "maxParallelImagePulls", doc: "largest number of concurrent pulls; by default no limit, if pulls are not serialized"},
		{name: "imagePullCredentialsVerificationPolicy", doc: "which pods may use an image that is already present: NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify", def: "NeverVerifyPreloadedImages"},
		{name: "preloadedImagesVerificationAllowlist", doc: "images that NeverVerifyAllowlistedImages exempts from verification"},
		{name: "imageGCHighThresholdPercent", doc: "disk usage in percent above which images are deleted", def: "85", flag: "image-gc-high-threshold"},
		{name: "imageGCLowThresholdPercent", doc: "disk usage in percent down to which images are deleted", def: "80", flag: "image-gc-low-threshold"},
		{name: "imageMinimumGCAge", doc: "age below which an image is not deleted", def: "2m", flag: "minimum-image-ttl-duration"},
		{name: "imageMaximumGCAge", doc: "time after which an unused image is deleted; 0: only under disk pressure"},
	}},
	{"Node and cluster", []field{
		{name: "registerNode", doc: "create the Node object", def: "true", flag: "register-node"},
		{name: "registerWithTaints", doc: "taints of a new Node object, as key=value:effect,…", flag: "register-with-taints"},
		{name: "providerID", doc: "ID of the machine at its cloud provider", flag: "provider-id"},
		{name: "nodeStatusUpdateFrequency", doc: "interval at which the node status is computed", def: "10s", flag: "node-status-update-frequency"},
		{name: "nodeStatusReportFrequency", doc: "interval at which an unchanged node status is reported; by default 5m, or nodeStatusUpdateFrequency if only that is set", def: "5m"},
		{name: "nodeStatusMaxImages", doc: "number of images in the node status; -1: all", def: "50", flag: "node-status-max-images"},
		{name: "nodeLeaseDurationSeconds", doc: "duration of the node lease", def: "40"},
		{name: "rotateCertificates", doc: "renew every client certificate of --kubeconfig: an embedded one is copied to kubelet-client-current.pem in --cert-dir and replaced at once; false: only one in --cert-dir", def: "false", flag: "rotate-certificates"},
		{name: "clientCertificateKeyAlgorithm", doc: "algorithm of the keys of requested client certificates, with rotateCertificates: " + strings.Join(keyAlgorithms, ", ") + "; a certificate in use is not replaced", def: "ECDSA-P256", since: 38},
		{name: "kubeAPIQPS", doc: "requests per second to the API server", def: "50", flag: "kube-api-qps"},
		{name: "kubeAPIBurst", doc: "requests to the API server at the same time; by default 300, where the kubelet has 100, so that a node that reconnects is not delayed", flag: "kube-api-burst", reported: "300"},
		{name: "eventRecordQPS", doc: "events per second", def: "50", flag: "event-qps"},
		{name: "eventBurst", doc: "events at the same time", def: "100", flag: "event-burst"},
		{name: "contentType", doc: "encoding of requests to the API server: application/json, or protobuf", def: "application/vnd.kubernetes.protobuf", flag: "kube-api-content-type"},
		{name: "configMapAndSecretChangeDetectionStrategy", doc: "how changes of ConfigMaps and Secrets are detected: Watch, Cache or Get", def: "Watch"},
		{name: "enableControllerAttachDetach", effect: refused, doc: "volumes are attached by the controller of the cluster only", flag: "enable-controller-attach-detach", accepted: "true", reported: "true"},
		{name: "volumePluginDir", effect: ignored, doc: "FlexVolume plugins are not supported; CSI drivers are", flag: "volume-plugin-dir", reported: "/usr/libexec/kubernetes/kubelet-plugins/volume/exec/"},
		{name: "volumeStatsAggPeriod", doc: "interval at which the disk usage of volumes is measured", def: "1m", flag: "volume-stats-agg-period"},
	}},
	{"Server", []field{
		{name: "enableServer", doc: "serve port and readOnlyPort", def: "true", flag: "enable-server"},
		{name: "address", doc: "address of port and readOnlyPort", def: "0.0.0.0", flag: "address"},
		{name: "port", doc: "port of the kubelet API; 0: 10250 with a cluster, otherwise none; -1: any free port", flag: "port"},
		{name: "readOnlyPort", doc: "port of the unauthenticated read-only API; 0: none; -1: any free port", flag: "read-only-port"},
		{name: "healthzPort", doc: "port of /healthz; by default 10248 with a cluster, otherwise none; 0: none; -1: any free port", flag: "healthz-port"},
		{name: "healthzBindAddress", doc: "address of healthzPort", def: "127.0.0.1", flag: "healthz-bind-address"},
		{name: "tlsCertFile", doc: "serving certificate, reloaded if it changes; by default a self-signed one is created", flag: "tls-cert-file"},
		{name: "tlsPrivateKeyFile", doc: "key of tlsCertFile", flag: "tls-private-key-file"},
		{name: "serverTLSBootstrap", doc: "request the serving certificate from the cluster, where it must be approved", flag: "rotate-server-certificates"},
		{name: "serverCertificateKeyAlgorithm", doc: "algorithm of the keys of requested serving certificates, with serverTLSBootstrap: " + strings.Join(keyAlgorithms, ", ") + "; a certificate in use is not replaced", def: "ECDSA-P256", since: 38},
		{name: "tlsMinVersion", doc: "minimum version of TLS: VersionTLS12 or VersionTLS13; VersionTLS10 and VersionTLS11 cause a warning; by default VersionTLS12", flag: "tls-min-version"},
		{name: "tlsCipherSuites", doc: "cipher suites up to TLS 1.2, insecure ones cause a warning; by default those of Go", flag: "tls-cipher-suites"},
		{name: "tlsCurvePreferences", doc: "IDs of key exchanges; by default those of Go"},
		{name: "authentication.x509.clientCAFile", doc: "certificate authorities of client certificates, reloaded if the file changes", flag: "client-ca-file"},
		{name: "authentication.webhook.enabled", doc: "authenticate bearer tokens with the API server; by default true with a cluster", flag: "authentication-token-webhook"},
		{name: "authentication.webhook.cacheTTL", doc: "duration for which an authenticated token is cached", def: "2m", flag: "authentication-token-webhook-cache-ttl"},
		{name: "authentication.anonymous.enabled", doc: "requests without credentials are those of system:anonymous", def: "false", flag: "anonymous-auth"},
		{name: "authorization.mode", doc: "Webhook, with the API server, or AlwaysAllow; by default Webhook with a cluster, otherwise required", flag: "authorization-mode"},
		{name: "authorization.webhook.cacheAuthorizedTTL", doc: "duration for which an allowed request is cached", def: "5m", flag: "authorization-webhook-cache-authorized-ttl"},
		{name: "authorization.webhook.cacheUnauthorizedTTL", doc: "duration for which a denied request is cached", def: "30s", flag: "authorization-webhook-cache-unauthorized-ttl"},
		{name: "streamingConnectionIdleTimeout", doc: "idle timeout of exec, attach and port-forward streams", def: "4h", flag: "streaming-connection-idle-timeout"},
		{name: "enableDebuggingHandlers", doc: "serve logs, exec, attach and port-forward of pods, and the handlers below", def: "true", flag: "enable-debugging-handlers"},
		{name: "enableSystemLogHandler", doc: "serve the files of /var/log at /logs", def: "true"},
		{name: "enableSystemLogQuery", doc: "serve logs of system services at /logs?query=", def: "false"},
		{name: "enableProfilingHandler", doc: "serve /debug/pprof", def: "true"},
		{name: "enableContentionProfiling", doc: "profile lock contention", flag: "contention-profiling"},
		{name: "enableDebugFlagsHandler", doc: "serve PUT /debug/flags/v, which sets the verbosity of logs", def: "true"},
		{name: "showHiddenMetricsForVersion", effect: ignored, doc: "no metric is hidden"},
	}},
	{"Cgroups and resources", []field{
		{name: "cgroupsPerQOS", doc: "create a cgroup for each pod and QoS class", def: "true", flag: "cgroups-per-qos"},
		{name: "cgroupDriver", doc: "cgroupfs or systemd, if the runtime does not report its driver", flag: "cgroup-driver"},
		{name: "cgroupRoot", doc: "parent of the cgroup of all pods; by default the root", flag: "cgroup-root"},
		{name: "systemReserved", doc: "resources reserved for system daemons, as cpu=500m,memory=1Gi,pid=1000", flag: "system-reserved"},
		{name: "kubeReserved", doc: "resources reserved for the kubelet and the runtime", flag: "kube-reserved"},
		{name: "systemReservedCgroup", doc: "cgroup that is limited to systemReserved", flag: "system-reserved-cgroup"},
		{name: "kubeReservedCgroup", doc: "cgroup that is limited to kubeReserved", flag: "kube-reserved-cgroup"},
		{name: "reservedSystemCPUs", doc: "CPUs that pods cannot use, such as 0-1, instead of those of systemReserved and kubeReserved", flag: "reserved-cpus"},
		{name: "enforceNodeAllocatable", doc: "cgroups that are limited: none, pods, system-reserved or system-reserved-compressible, kube-reserved or kube-reserved-compressible", def: "[pods]", flag: "enforce-node-allocatable"},
		{name: "qosReserved", doc: "percentage of the requests of Guaranteed and Burstable pods that other pods cannot use, as memory=50%", flag: "qos-reserved"},
		{name: "kubeletCgroups", doc: "cgroup that the kubelet moves to, reported as the system container kubelet; with systemd a slice, or a service that contains the kubelet", flag: "kubelet-cgroups"},
		{name: "systemCgroups", doc: "cgroup that processes of the root cgroup are moved to, reported as the system container misc; with systemd a slice", flag: "system-cgroups"},
		{name: "podPidsLimit", doc: "largest number of processes of a pod; -1: no limit", def: "-1", flag: "pod-max-pids"},
		{name: "cpuCFSQuota", doc: "enforce CPU limits", def: "true", flag: "cpu-cfs-quota"},
		{name: "cpuCFSQuotaPeriod", doc: "period of CPU limits", def: "100ms", flag: "cpu-cfs-quota-period"},
		{name: "failSwapOn", doc: "refuse to start if swap is enabled", def: "true", flag: "fail-swap-on"},
		{name: "failCgroupV1", doc: "refuse to start with cgroup v1; by default false, where the kubelet refuses", def: "false", flag: "fail-cgroupv1"},
		{name: "protectKernelDefaults", doc: "refuse to start if kernel parameters differ from those that the kubelet requires, instead of setting them", flag: "protect-kernel-defaults"},
		{name: "memorySwap.swapBehavior", doc: "NoSwap, or LimitedSwap: Burstable pods may swap in proportion to their requests"},
		{name: "singleProcessOOMKill", doc: "processes of a container are killed individually when it is out of memory"},
		{name: "memoryThrottlingFactor", doc: "position between memory request and limit above which a container, or a pod with a memory limit of its own, is throttled, with the feature gate MemoryQoS; unset: not throttled"},
		{name: "memoryReservationPolicy", doc: "None or TieredReservation, with the feature gate MemoryQoS", reported: "None"},
		{name: "cpuManagerPolicy", doc: "none, or static: Guaranteed pods get exclusive CPUs", def: "none", flag: "cpu-manager-policy"},
		{name: "cpuManagerPolicyOptions", doc: "options of cpuManagerPolicy, as full-pcpus-only=true,…", flag: "cpu-manager-policy-options"},
		{name: "cpuManagerReconcilePeriod", effect: ignored, doc: "CPUs of containers are reconciled every ten seconds", flag: "cpu-manager-reconcile-period", accepted: "10s", reported: "10s"},
		{name: "memoryManagerPolicy", doc: "None, or Static: Guaranteed pods get memory of certain NUMA nodes", def: "None", flag: "memory-manager-policy"},
		{name: "reservedMemory", doc: "memory of each NUMA node that pods cannot use, as 0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi", flag: "reserved-memory"},
		{name: "topologyManagerPolicy", doc: "none, best-effort, restricted or single-numa-node", def: "none", flag: "topology-manager-policy"},
		{name: "topologyManagerScope", doc: "container or pod", def: "container", flag: "topology-manager-scope"},
		{name: "topologyManagerPolicyOptions", doc: "options of topologyManagerPolicy, as prefer-closest-numa-nodes=true,…", flag: "topology-manager-policy-options"},
	}},
	{"Eviction and shutdown", []field{
		{name: "evictionHard", doc: "thresholds without grace period, as memory.available<100Mi,nodefs.available<10%", flag: "eviction-hard", separator: "<"},
		{name: "evictionSoft", doc: "thresholds with grace period", flag: "eviction-soft", separator: "<"},
		{name: "evictionSoftGracePeriod", doc: "grace periods of evictionSoft, as memory.available=1m30s", flag: "eviction-soft-grace-period"},
		{name: "evictionMinimumReclaim", doc: "amounts to free beyond a threshold, as nodefs.available=2Gi", flag: "eviction-minimum-reclaim"},
		{name: "evictionPressureTransitionPeriod", doc: "duration for which a pressure condition remains", def: "5m", flag: "eviction-pressure-transition-period"},
		{name: "evictionMaxPodGracePeriod", doc: "longest grace period of a pod at a soft threshold, in seconds", flag: "eviction-max-pod-grace-period"},
		{name: "mergeDefaultEvictionSettings", doc: "signals that evictionHard does not contain have their default thresholds", reported: "false"},
		{name: "kernelMemcgNotification", doc: "detect memory pressure by notifications of the kernel", flag: "kernel-memcg-notification"},
		{name: "localStorageCapacityIsolation", doc: "enforce limits on ephemeral storage", def: "true", flag: "local-storage-capacity-isolation"},
		{name: "shutdownGracePeriod", doc: "time in which pods terminate when the machine shuts down", flag: "shutdown-grace-period"},
		{name: "shutdownGracePeriodCriticalPods", doc: "part of shutdownGracePeriod that is reserved for critical pods, which terminate last", flag: "shutdown-grace-period-critical-pods"},
		{name: "shutdownGracePeriodByPodPriority", doc: "times in which pods terminate, by priority, instead of both"},
	}},
	{"Process and logs", []field{
		{name: "oomScoreAdj", doc: "OOM score adjustment of the kubelet, -1000 to 1000", def: "-999", flag: "oom-score-adj"},
		{name: "maxOpenFiles", doc: "limit of open files of the kubelet", def: "1000000", flag: "max-open-files"},
		{name: "logging.format", doc: "text or json", def: "text", flag: "logging-format"},
		{name: "logging.verbosity", doc: "0: warnings and errors; 2: information; 4: everything", flag: "v"},
		{name: "logging.vmodule", effect: ignored, doc: "logging.verbosity applies to all packages"},
		{name: "logging.flushFrequency", effect: ignored, doc: "lines are written immediately", reported: "5s"},
		{name: "logging.options", effect: ignored, doc: "logs are written to stderr, immediately"},
		{name: "tracing.endpoint", doc: "address of an OTLP collector that receives traces over gRPC without TLS; by default localhost:4317 if tracing is set"},
		{name: "tracing.samplingRatePerMillion", doc: "traces that are exported, of a million, if a client does not determine it; docs/tracing.md"},
		{name: "featureGates", doc: "feature gates, as MemoryQoS=true,…; see below", flag: "feature-gates"},
		{name: "makeIPTablesUtilChains", effect: ignored, doc: "kube-proxy and CNI plugins create their own chains", flag: "make-iptables-util-chains", accepted: "false", reported: "true"},
		{name: "iptablesMasqueradeBit", effect: ignored, doc: "kube-proxy and CNI plugins create their own chains", reported: "14"},
		{name: "iptablesDropBit", effect: ignored, doc: "kube-proxy and CNI plugins create their own chains", reported: "15"},
	}},
}
