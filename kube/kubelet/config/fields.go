package config

import "slices"

// An Effect is what package kubelet does with a field of a KubeletConfiguration.
type Effect int

const (
	// Honored: the field has the same effect as in the kubelet.
	Honored Effect = iota

	// Ignored: the field has no effect. Read reports it in a warning.
	Ignored

	// Refused: Read returns an error if the field is set, since ignoring it would have
	// another effect than the one asked for.
	Refused
)

// A Field describes one field of a KubeletConfiguration, or all fields below one.
type Field struct {
	Name   string // in a file, with a dot before the name of a nested field
	Group  string // the heading under which docs/configuration.md and --help list it
	Effect Effect

	// Doc is a noun phrase that describes the field; the reason if it is Ignored or
	// Refused.
	Doc string

	// Default is the value that Default sets, in YAML. Empty: the zero value.
	Default string

	// Flag is the name of the kubelet's flag for the field. Empty: there is none.
	Flag string

	fine      string // the value, in YAML, that is neither warned about nor refused
	separator string // between the names and values of a flag that is a map; empty: "="
}

// Fields returns a description of every field of a KubeletConfiguration, in groups.
func Fields() []Field {
	var all []Field
	for _, g := range groups {
		for _, f := range g.fields {
			f.Group = g.title
			all = append(all, f)
		}
	}
	return slices.Clip(all)
}

type group struct {
	title  string
	fields []Field
}

// groups is the only place that describes fields: defaults, warnings, errors, flags and
// docs/configuration.md are made from it. To rewrite that file, run
// go test ./kube/kubelet/config -update.
var groups = []group{
	{"Sources of pods", []Field{
		{Name: "staticPodPath", Doc: "file or directory of manifests of static pods", Flag: "pod-manifest-path"},
		{Name: "fileCheckFrequency", Doc: "interval at which staticPodPath is read where changes are not reported by the system", Default: "20s", Flag: "file-check-frequency"},
		{Name: "staticPodURL", Doc: "URL of a manifest, or of a list of them", Flag: "manifest-url"},
		{Name: "staticPodURLHeader", Doc: "headers of requests for staticPodURL, as key:value,…; the flag may be repeated", Flag: "manifest-url-header", separator: ":"},
		{Name: "httpCheckFrequency", Doc: "interval at which staticPodURL is requested", Default: "20s", Flag: "http-check-frequency"},
		{Name: "maxPods", Doc: "largest number of pods on the node", Default: "110", Flag: "max-pods"},
		{Name: "podsPerCore", Doc: "largest number of pods per CPU, up to maxPods; 0: no limit", Flag: "pods-per-core"},
		{Name: "runOnce", Effect: Refused, Doc: "the kubelet runs until it is stopped; a pod of a manifest with restartPolicy Never terminates by itself", Flag: "runonce"},
	}},
	{"Containers and their runtime", []Field{
		{Name: "containerRuntimeEndpoint", Doc: "address of the CRI runtime, such as unix:///run/containerd/containerd.sock; process runs pods as plain processes", Flag: "container-runtime-endpoint"},
		{Name: "imageServiceEndpoint", Doc: "address of the CRI image service, if it differs from containerRuntimeEndpoint", Flag: "image-service-endpoint"},
		{Name: "runtimeRequestTimeout", Doc: "timeout of CRI calls", Default: "2m", Flag: "runtime-request-timeout"},
		{Name: "podLogsDir", Doc: "directory of container logs; by default /var/log/pods, for plain processes log/pods in the root directory", Flag: "pod-logs-dir"},
		{Name: "containerLogMaxSize", Doc: "size at which a log is rotated", Default: "10Mi", Flag: "container-log-max-size"},
		{Name: "containerLogMaxFiles", Doc: "largest number of files of one log", Default: "5", Flag: "container-log-max-files"},
		{Name: "containerLogMaxWorkers", Doc: "number of logs that are rotated concurrently", Default: "1"},
		{Name: "containerLogMonitorInterval", Doc: "interval at which sizes of logs are read", Default: "10s"},
		{Name: "syncFrequency", Doc: "interval at which a pod is synced without an event", Default: "1m", Flag: "sync-frequency"},
		{Name: "crashLoopBackOff.maxContainerRestartPeriod", Doc: "longest delay of a container restart, 1s to 5m; by default 5m"},
		{Name: "seccompDefault", Doc: "containers without a seccomp profile use RuntimeDefault", Default: "false", Flag: "seccomp-default"},
		{Name: "allowedUnsafeSysctls", Doc: "sysctls that pods may set in addition to the safe ones", Flag: "allowed-unsafe-sysctls"},
		{Name: "defaultPodSysctls", Effect: Ignored, Doc: "pods have the sysctls of their spec only"},
		{Name: "userNamespaces.idsPerPod", Doc: "user and group IDs of a pod with a user namespace, a multiple of 65536", Default: "65536"},
		{Name: "hairpinMode", Effect: Ignored, Doc: "the CNI plugin decides whether a pod can reach itself through its service (bridge: hairpinMode)", Flag: "hairpin-mode"},
		{Name: "podCIDR", Effect: Ignored, Doc: "the CNI plugin allocates addresses of pods", Flag: "pod-cidr"},
	}},
	{"DNS of pods", []Field{
		{Name: "clusterDNS", Doc: "name servers of pods; by default those of resolvConf", Flag: "cluster-dns"},
		{Name: "clusterDomain", Doc: "domain of the services of the cluster, which pods search", Flag: "cluster-domain"},
		{Name: "resolvConf", Doc: "file with the name servers of the machine; by default /etc/resolv.conf; empty: none", Flag: "resolv-conf"},
	}},
	{"Images", []Field{
		{Name: "registryPullQPS", Doc: "image pulls per second; 0: no limit", Default: "5", Flag: "registry-qps"},
		{Name: "registryBurst", Doc: "image pulls that may start at the same time", Default: "10", Flag: "registry-burst"},
		{Name: "serializeImagePulls", Doc: "pull one image at a time; by default true, unless maxParallelImagePulls is greater than 1", Flag: "serialize-image-pulls"},
		{Name: "maxParallelImagePulls", Doc: "largest number of concurrent pulls; by default no limit, if pulls are not serialized"},
		{Name: "imagePullCredentialsVerificationPolicy", Doc: "which pods may use an image that is already present: NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify", Default: "NeverVerifyPreloadedImages"},
		{Name: "preloadedImagesVerificationAllowlist", Doc: "images that NeverVerifyAllowlistedImages exempts from verification"},
		{Name: "imageGCHighThresholdPercent", Doc: "disk usage in percent above which images are deleted", Default: "85", Flag: "image-gc-high-threshold"},
		{Name: "imageGCLowThresholdPercent", Doc: "disk usage in percent down to which images are deleted", Default: "80", Flag: "image-gc-low-threshold"},
		{Name: "imageMinimumGCAge", Doc: "age below which an image is not deleted", Default: "2m", Flag: "minimum-image-ttl-duration"},
		{Name: "imageMaximumGCAge", Doc: "time after which an unused image is deleted; 0: only under disk pressure"},
	}},
	{"Node and cluster", []Field{
		{Name: "registerNode", Doc: "create the Node object", Default: "true", Flag: "register-node"},
		{Name: "registerWithTaints", Doc: "taints of a new Node object, as key=value:effect,…", Flag: "register-with-taints"},
		{Name: "providerID", Doc: "ID of the machine at its cloud provider", Flag: "provider-id"},
		{Name: "nodeStatusUpdateFrequency", Doc: "interval at which the node status is computed", Default: "10s", Flag: "node-status-update-frequency"},
		{Name: "nodeStatusReportFrequency", Doc: "interval at which an unchanged node status is reported; by default 5m, or nodeStatusUpdateFrequency if only that is set"},
		{Name: "nodeStatusMaxImages", Doc: "number of images in the node status; -1: all", Default: "50", Flag: "node-status-max-images"},
		{Name: "nodeLeaseDurationSeconds", Doc: "duration of the node lease", Default: "40"},
		{Name: "rotateCertificates", Effect: Ignored, Doc: "a client certificate that was requested with a bootstrap kubeconfig is always renewed, any other never", Flag: "rotate-certificates", fine: "true"},
		{Name: "kubeAPIQPS", Doc: "requests per second to the API server", Default: "50", Flag: "kube-api-qps"},
		{Name: "kubeAPIBurst", Doc: "requests to the API server at the same time; by default 300, where the kubelet has 100, so that a node that reconnects is not delayed", Flag: "kube-api-burst"},
		{Name: "eventRecordQPS", Doc: "events per second", Default: "50", Flag: "event-qps"},
		{Name: "eventBurst", Doc: "events at the same time", Default: "100", Flag: "event-burst"},
		{Name: "contentType", Doc: "encoding of requests to the API server: application/json, or protobuf", Default: "application/vnd.kubernetes.protobuf", Flag: "kube-api-content-type"},
		{Name: "configMapAndSecretChangeDetectionStrategy", Doc: "how changes of ConfigMaps and Secrets are detected: Watch, Cache or Get", Default: "Watch"},
		{Name: "enableControllerAttachDetach", Effect: Refused, Doc: "volumes are attached by the controller of the cluster only", Flag: "enable-controller-attach-detach", fine: "true"},
		{Name: "volumePluginDir", Effect: Ignored, Doc: "FlexVolume plugins are not supported; CSI drivers are", Flag: "volume-plugin-dir"},
		{Name: "volumeStatsAggPeriod", Doc: "interval at which the disk usage of volumes is measured", Default: "1m", Flag: "volume-stats-agg-period"},
	}},
	{"Server", []Field{
		{Name: "enableServer", Doc: "serve port and readOnlyPort", Default: "true", Flag: "enable-server"},
		{Name: "address", Doc: "address of port and readOnlyPort", Default: "0.0.0.0", Flag: "address"},
		{Name: "port", Doc: "port of the kubelet API; 0: 10250 with a cluster, otherwise none; -1: any free port", Flag: "port"},
		{Name: "readOnlyPort", Doc: "port of the unauthenticated read-only API; 0: none; -1: any free port", Flag: "read-only-port"},
		{Name: "healthzPort", Doc: "port of /healthz; by default 10248 with a cluster, otherwise none; 0: none; -1: any free port", Flag: "healthz-port"},
		{Name: "healthzBindAddress", Doc: "address of healthzPort", Default: "127.0.0.1", Flag: "healthz-bind-address"},
		{Name: "tlsCertFile", Doc: "serving certificate, reloaded if it changes; by default a self-signed one is created", Flag: "tls-cert-file"},
		{Name: "tlsPrivateKeyFile", Doc: "key of tlsCertFile", Flag: "tls-private-key-file"},
		{Name: "serverTLSBootstrap", Doc: "request the serving certificate from the cluster, where it must be approved", Flag: "rotate-server-certificates"},
		{Name: "tlsMinVersion", Doc: "minimum version of TLS: VersionTLS12 or VersionTLS13; VersionTLS10 and VersionTLS11 cause a warning", Default: "VersionTLS12", Flag: "tls-min-version"},
		{Name: "tlsCipherSuites", Doc: "cipher suites up to TLS 1.2, insecure ones cause a warning; by default those of Go", Flag: "tls-cipher-suites"},
		{Name: "tlsCurvePreferences", Doc: "IDs of key exchanges; by default those of Go"},
		{Name: "authentication.x509.clientCAFile", Doc: "certificate authorities of client certificates, reloaded if the file changes", Flag: "client-ca-file"},
		{Name: "authentication.webhook.enabled", Doc: "authenticate bearer tokens with the API server; by default true with a cluster", Flag: "authentication-token-webhook"},
		{Name: "authentication.webhook.cacheTTL", Doc: "duration for which an authenticated token is cached", Default: "2m", Flag: "authentication-token-webhook-cache-ttl"},
		{Name: "authentication.anonymous.enabled", Doc: "requests without credentials are those of system:anonymous", Default: "false", Flag: "anonymous-auth"},
		{Name: "authorization.mode", Doc: "Webhook, with the API server, or AlwaysAllow; by default Webhook with a cluster, otherwise required", Flag: "authorization-mode"},
		{Name: "authorization.webhook.cacheAuthorizedTTL", Doc: "duration for which an allowed request is cached", Default: "5m", Flag: "authorization-webhook-cache-authorized-ttl"},
		{Name: "authorization.webhook.cacheUnauthorizedTTL", Doc: "duration for which a denied request is cached", Default: "30s", Flag: "authorization-webhook-cache-unauthorized-ttl"},
		{Name: "streamingConnectionIdleTimeout", Doc: "idle timeout of exec, attach and port-forward streams", Default: "4h", Flag: "streaming-connection-idle-timeout"},
		{Name: "enableDebuggingHandlers", Doc: "serve logs, exec, attach and port-forward of pods, and the handlers below", Default: "true", Flag: "enable-debugging-handlers"},
		{Name: "enableSystemLogHandler", Doc: "serve the files of /var/log at /logs", Default: "true"},
		{Name: "enableSystemLogQuery", Doc: "serve logs of system services at /logs?query=", Default: "false"},
		{Name: "enableProfilingHandler", Doc: "serve /debug/pprof", Default: "true"},
		{Name: "enableContentionProfiling", Doc: "profile lock contention", Flag: "contention-profiling"},
		{Name: "enableDebugFlagsHandler", Doc: "serve PUT /debug/flags/v, which sets the verbosity of logs", Default: "true"},
		{Name: "showHiddenMetricsForVersion", Effect: Ignored, Doc: "no metric is hidden"},
	}},
	{"Cgroups and resources", []Field{
		{Name: "cgroupsPerQOS", Doc: "create a cgroup for each pod and QoS class", Default: "true", Flag: "cgroups-per-qos"},
		{Name: "cgroupDriver", Doc: "cgroupfs or systemd, if the runtime does not report its driver", Flag: "cgroup-driver"},
		{Name: "cgroupRoot", Doc: "parent of the cgroup of all pods; by default the root", Flag: "cgroup-root"},
		{Name: "systemReserved", Doc: "resources reserved for system daemons, as cpu=500m,memory=1Gi,pid=1000", Flag: "system-reserved"},
		{Name: "kubeReserved", Doc: "resources reserved for the kubelet and the runtime", Flag: "kube-reserved"},
		{Name: "systemReservedCgroup", Doc: "cgroup that is limited to systemReserved", Flag: "system-reserved-cgroup"},
		{Name: "kubeReservedCgroup", Doc: "cgroup that is limited to kubeReserved", Flag: "kube-reserved-cgroup"},
		{Name: "reservedSystemCPUs", Doc: "CPUs that pods cannot use, such as 0-1, instead of those of systemReserved and kubeReserved", Flag: "reserved-cpus"},
		{Name: "enforceNodeAllocatable", Doc: "cgroups that are limited: none, pods, system-reserved, kube-reserved", Default: "[pods]", Flag: "enforce-node-allocatable"},
		{Name: "qosReserved", Doc: "percentage of the requests of Guaranteed and Burstable pods that other pods cannot use, as memory=50%", Flag: "qos-reserved"},
		{Name: "kubeletCgroups", Doc: "cgroup that the kubelet moves to, reported as the system container kubelet; with systemd a slice, or a service that contains the kubelet", Flag: "kubelet-cgroups"},
		{Name: "systemCgroups", Doc: "cgroup that processes of the root cgroup are moved to, reported as the system container misc; with systemd a slice", Flag: "system-cgroups"},
		{Name: "podPidsLimit", Doc: "largest number of processes of a pod; -1: no limit", Default: "-1", Flag: "pod-max-pids"},
		{Name: "cpuCFSQuota", Doc: "enforce CPU limits", Default: "true", Flag: "cpu-cfs-quota"},
		{Name: "cpuCFSQuotaPeriod", Doc: "period of CPU limits", Default: "100ms", Flag: "cpu-cfs-quota-period"},
		{Name: "failSwapOn", Doc: "refuse to start if swap is enabled", Default: "true", Flag: "fail-swap-on"},
		{Name: "failCgroupV1", Doc: "refuse to start with cgroup v1; by default false, where the kubelet refuses", Default: "false", Flag: "fail-cgroupv1"},
		{Name: "protectKernelDefaults", Doc: "refuse to start if kernel parameters differ from those that the kubelet requires, instead of setting them", Flag: "protect-kernel-defaults"},
		{Name: "memorySwap.swapBehavior", Doc: "NoSwap, or LimitedSwap: Burstable pods may swap in proportion to their requests"},
		{Name: "singleProcessOOMKill", Doc: "processes of a container are killed individually when it is out of memory"},
		{Name: "memoryThrottlingFactor", Doc: "fraction of the memory limit above which a container is throttled, with the feature gate MemoryQoS", Default: "0.9"},
		{Name: "memoryReservationPolicy", Doc: "None or TieredReservation, with the feature gate MemoryQoS"},
		{Name: "cpuManagerPolicy", Doc: "none, or static: Guaranteed pods get exclusive CPUs", Default: "none", Flag: "cpu-manager-policy"},
		{Name: "cpuManagerPolicyOptions", Doc: "options of cpuManagerPolicy, as full-pcpus-only=true,…", Flag: "cpu-manager-policy-options"},
		{Name: "cpuManagerReconcilePeriod", Effect: Ignored, Doc: "CPUs of containers are reconciled every ten seconds", Flag: "cpu-manager-reconcile-period", fine: "10s"},
		{Name: "memoryManagerPolicy", Doc: "None, or Static: Guaranteed pods get memory of certain NUMA nodes", Default: "None", Flag: "memory-manager-policy"},
		{Name: "reservedMemory", Doc: "memory of each NUMA node that pods cannot use, as 0:memory=1Gi,hugepages-2Mi=64Mi;1:memory=2Gi", Flag: "reserved-memory"},
		{Name: "topologyManagerPolicy", Doc: "none, best-effort, restricted or single-numa-node", Default: "none", Flag: "topology-manager-policy"},
		{Name: "topologyManagerScope", Doc: "container or pod", Default: "container", Flag: "topology-manager-scope"},
		{Name: "topologyManagerPolicyOptions", Doc: "options of topologyManagerPolicy, as prefer-closest-numa-nodes=true,…", Flag: "topology-manager-policy-options"},
	}},
	{"Eviction and shutdown", []Field{
		{Name: "evictionHard", Doc: "thresholds without grace period, as memory.available<100Mi,nodefs.available<10%", Flag: "eviction-hard", separator: "<"},
		{Name: "evictionSoft", Doc: "thresholds with grace period", Flag: "eviction-soft", separator: "<"},
		{Name: "evictionSoftGracePeriod", Doc: "grace periods of evictionSoft, as memory.available=1m30s", Flag: "eviction-soft-grace-period"},
		{Name: "evictionMinimumReclaim", Doc: "amounts to free beyond a threshold, as nodefs.available=2Gi", Flag: "eviction-minimum-reclaim"},
		{Name: "evictionPressureTransitionPeriod", Doc: "duration for which a pressure condition remains", Default: "5m", Flag: "eviction-pressure-transition-period"},
		{Name: "evictionMaxPodGracePeriod", Doc: "longest grace period of a pod at a soft threshold, in seconds", Flag: "eviction-max-pod-grace-period"},
		{Name: "mergeDefaultEvictionSettings", Doc: "signals that evictionHard does not contain have their default thresholds"},
		{Name: "kernelMemcgNotification", Doc: "detect memory pressure by notifications of the kernel", Flag: "kernel-memcg-notification"},
		{Name: "localStorageCapacityIsolation", Doc: "enforce limits on ephemeral storage", Default: "true", Flag: "local-storage-capacity-isolation"},
		{Name: "shutdownGracePeriod", Doc: "time in which pods terminate when the machine shuts down", Flag: "shutdown-grace-period"},
		{Name: "shutdownGracePeriodCriticalPods", Doc: "part of shutdownGracePeriod that is reserved for critical pods, which terminate last", Flag: "shutdown-grace-period-critical-pods"},
		{Name: "shutdownGracePeriodByPodPriority", Doc: "times in which pods terminate, by priority, instead of both"},
	}},
	{"Process and logs", []Field{
		{Name: "oomScoreAdj", Doc: "OOM score adjustment of the kubelet, -1000 to 1000", Default: "-999", Flag: "oom-score-adj"},
		{Name: "maxOpenFiles", Doc: "limit of open files of the kubelet", Default: "1000000", Flag: "max-open-files"},
		{Name: "logging.format", Doc: "text or json", Default: "text", Flag: "logging-format"},
		{Name: "logging.verbosity", Doc: "0: warnings and errors; 2: what the kubelet does; 4: everything", Flag: "v"},
		{Name: "logging.vmodule", Effect: Ignored, Doc: "logging.verbosity applies to all packages"},
		{Name: "logging.flushFrequency", Effect: Ignored, Doc: "lines are written immediately"},
		{Name: "logging.options", Effect: Ignored, Doc: "logs are written to stderr, immediately"},
		{Name: "tracing", Effect: Ignored, Doc: "there are no traces"},
		{Name: "featureGates", Doc: "feature gates, as MemoryQoS=true,…; see below", Flag: "feature-gates"},
		{Name: "makeIPTablesUtilChains", Effect: Ignored, Doc: "kube-proxy and CNI plugins create their own chains", Flag: "make-iptables-util-chains", fine: "false"},
		{Name: "iptablesMasqueradeBit", Effect: Ignored, Doc: "kube-proxy and CNI plugins create their own chains"},
		{Name: "iptablesDropBit", Effect: Ignored, Doc: "kube-proxy and CNI plugins create their own chains"},
	}},
}
