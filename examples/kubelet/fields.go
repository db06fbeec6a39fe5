package main

// A doing is what this agent does with a field of a KubeletConfiguration.
type doing int

const (
	// honoured: it decides what it decides in a kubelet.
	honoured doing = iota
	// warned: nothing comes of it, and whoever sets it is told so, by name: what a
	// file asks for and does not get should not be found out in production.
	warned
	// refused: the agent does not start with it, since what comes of it otherwise is
	// something else than was asked for.
	refused
)

// A field is one of a KubeletConfiguration, or all that is below one. Whoever makes
// use of one changes its row here: what is read, warned of, refused, taken for a
// default, and written in docs/configuration.md, all follows from the rows.
// (`go test ./examples/kubelet -run Configuration -update` writes that file.)
type field struct {
	name string // as the file spells it, with a dot before a field of a field
	does doing
	what string // it decides; of one that is not honoured, why nothing comes of it
	def  string // what holds where the file says nothing, in YAML; "": the zero value
	flag string // that wins over it
	in   string // the file of this package that reads it
	fine string // the value, in YAML, that is no reason for a warning or a refusal
}

// A chapter is fields that belong together.
type chapter struct {
	title  string
	fields []field
}

// chapters are all fields of a KubeletConfiguration.
var chapters = []chapter{
	{"Which pods run here", []field{
		{name: "staticPodPath", what: "file or directory of pod manifests", flag: "manifests", in: "flags.go"},
		{name: "fileCheckFrequency", what: "how often it is read where the system does not tell of changes", def: "20s", flag: "file-check-frequency", in: "sources.go"},
		{name: "staticPodURL", what: "URL of manifests", flag: "manifest-url", in: "sources.go"},
		{name: "staticPodURLHeader", what: "headers that it is asked with", flag: "manifest-url-header", in: "sources.go"},
		{name: "httpCheckFrequency", what: "how often it is asked", def: "20s", flag: "http-check-frequency", in: "sources.go"},
		{name: "maxPods", what: "pods that this node takes", def: "110", flag: "max-pods", in: "cgroups.go"},
		{name: "podsPerCore", what: "pods for each CPU, up to maxPods; 0: any number", flag: "pods-per-core", in: "engine.go"},
		{name: "runOnce", does: refused, what: "this agent runs until it is stopped; a job in a manifest ends by itself", flag: "runonce"},
	}},
	{"Containers and their runtime", []field{
		{name: "containerRuntimeEndpoint", what: "socket of a CRI runtime; without one pods are plain processes", flag: "runtime", in: "flags.go"},
		{name: "imageServiceEndpoint", what: "socket of the runtime's images, if that is another", flag: "image-service-endpoint", in: "connect.go"},
		{name: "runtimeRequestTimeout", what: "how long a call of the runtime may take", def: "2m", flag: "runtime-request-timeout", in: "connect.go"},
		{name: "podLogsDir", what: "directory for the logs of containers; below --root for plain processes, /var/log/pods otherwise", flag: "pod-logs-dir", in: "flags.go"},
		{name: "containerLogMaxSize", what: "size at which a log is rotated", def: "10Mi", flag: "container-log-max-size", in: "logs.go"},
		{name: "containerLogMaxFiles", what: "files that a log may have", def: "5", flag: "container-log-max-files", in: "logs.go"},
		{name: "containerLogMaxWorkers", what: "logs that are rotated at once", def: "1", in: "logs.go"},
		{name: "containerLogMonitorInterval", what: "how often their sizes are looked at", def: "10s", in: "logs.go"},
		{name: "syncFrequency", what: "how often a pod is looked at to which nothing happens", def: "1m", flag: "sync-frequency", in: "pipeline.go"},
		{name: "crashLoopBackOff.maxContainerRestartPeriod", what: "the longest that a container waits that crashes, 1s to 5m; without it 5m", in: "engine.go"},
		{name: "seccompDefault", what: "containers without a seccomp profile have the runtime's", def: "false", flag: "seccomp-default", in: "cgroups.go"},
		{name: "allowedUnsafeSysctls", what: "sysctls that pods may set beside the safe ones", flag: "allowed-unsafe-sysctls", in: "engine.go"},
		{name: "defaultPodSysctls", does: warned, what: "pods have the sysctls that they ask for, and no others"},
		{name: "userNamespaces.idsPerPod", what: "IDs of a pod with a user namespace, a multiple of 65536", def: "65536", in: "engine.go"},
		{name: "hairpinMode", does: warned, what: "the CNI plugin decides whether a pod reaches itself by its service (bridge: hairpinMode)", flag: "hairpin-mode"},
		{name: "podCIDR", does: warned, what: "the CNI plugin has the addresses of pods", flag: "pod-cidr"},
	}},
	{"Names that pods resolve", []field{
		{name: "clusterDNS", what: "name servers of pods; without them those of resolvConf", flag: "cluster-dns", in: "engine.go"},
		{name: "clusterDomain", what: "domain of the cluster's services, in which pods search", flag: "cluster-domain", in: "engine.go"},
		{name: "resolvConf", what: "file with the machine's name servers; without it /etc/resolv.conf; empty: none", flag: "resolv-conf", in: "engine.go"},
	}},
	{"Images", []field{
		{name: "registryPullQPS", what: "pulls that are begun a second; 0: any number", def: "5", flag: "registry-qps", in: "engine.go"},
		{name: "registryBurst", what: "pulls that are begun at once", def: "10", flag: "registry-burst", in: "engine.go"},
		{name: "serializeImagePulls", what: "pull one image after the other; true, unless maxParallelImagePulls is above 1", flag: "serialize-image-pulls", in: "engine.go"},
		{name: "maxParallelImagePulls", what: "pulls at the same time; without it any number, if they are not serialized", in: "engine.go"},
		{name: "imagePullCredentialsVerificationPolicy", what: "who may use an image that is there: NeverVerify, NeverVerifyPreloadedImages, NeverVerifyAllowlistedImages or AlwaysVerify", def: "NeverVerifyPreloadedImages", in: "engine.go"},
		{name: "preloadedImagesVerificationAllowlist", what: "images that NeverVerifyAllowlistedImages lets everybody use", in: "engine.go"},
		{name: "imageGCHighThresholdPercent", what: "percent of their disk in use from which on images are deleted", def: "85", flag: "image-gc-high-threshold", in: "images.go"},
		{name: "imageGCLowThresholdPercent", what: "percent in use to which they are", def: "80", flag: "image-gc-low-threshold", in: "images.go"},
		{name: "imageMinimumGCAge", what: "how long no image is deleted that has come", def: "2m", flag: "minimum-image-ttl-duration", in: "images.go"},
		{name: "imageMaximumGCAge", what: "how long an image stays that nobody uses; 0: until there is no room", in: "images.go"},
	}},
	{"Being a node of a cluster", []field{
		{name: "registerNode", what: "make the node's object", def: "true", flag: "register-node", in: "cluster.go"},
		{name: "registerWithTaints", what: "taints that it is made with", flag: "register-with-taints", in: "cluster.go"},
		{name: "providerID", what: "the machine's name at its cloud provider", flag: "provider-id", in: "cluster.go"},
		{name: "nodeStatusUpdateFrequency", what: "how often the node's status is looked at", def: "10s", flag: "node-status-update-frequency", in: "cluster.go"},
		{name: "nodeStatusReportFrequency", what: "how often it is sent if nothing has changed; 5m, or nodeStatusUpdateFrequency if only that is set", in: "cluster.go"},
		{name: "nodeStatusMaxImages", what: "images that it has; -1: all", def: "50", flag: "node-status-max-images", in: "pipeline.go"},
		{name: "nodeLeaseDurationSeconds", what: "how long others rely on the node's last word", def: "40", in: "cluster.go"},
		{name: "rotateCertificates", does: warned, what: "a certificate that the agent has asked for is always renewed, another never", flag: "rotate-certificates", fine: "true"},
		{name: "kubeAPIQPS", what: "calls a second of the API server", def: "50", flag: "kube-api-qps", in: "cluster.go"},
		{name: "kubeAPIBurst", what: "calls at once; 300, with which a node that comes back need not wait", flag: "kube-api-burst", in: "cluster.go"},
		{name: "eventRecordQPS", what: "events a second", def: "50", flag: "event-qps", in: "cluster.go"},
		{name: "eventBurst", what: "events at once", def: "100", flag: "event-burst", in: "cluster.go"},
		{name: "contentType", what: "application/json, or protobuf, which is smaller", def: "application/vnd.kubernetes.protobuf", flag: "kube-api-content-type", in: "cluster.go"},
		{name: "configMapAndSecretChangeDetectionStrategy", what: "how changes of ConfigMaps and Secrets are learned of: Watch, Cache or Get", def: "Watch", in: "cluster.go"},
		{name: "enableControllerAttachDetach", does: refused, what: "volumes are attached by the cluster's controller only", flag: "enable-controller-attach-detach", fine: "true"},
		{name: "volumePluginDir", does: warned, what: "FlexVolume plugins are not run; CSI drivers are", flag: "volume-plugin-dir"},
		{name: "volumeStatsAggPeriod", what: "how often the disk that volumes use is counted", def: "1m", flag: "volume-stats-agg-period", in: "volumes.go"},
	}},
	{"The kubelet's server", []field{
		{name: "enableServer", what: "serve port and readOnlyPort", def: "true", flag: "enable-server", in: "kubelet.go"},
		{name: "address", what: "address that they are open at", def: "0.0.0.0", flag: "address", in: "kubelet.go"},
		{name: "port", what: "port of the kubelet's API; 0: 10250 in a cluster, else none; -1: any that is free", flag: "port", in: "kubelet.go"},
		{name: "readOnlyPort", what: "port for who need not say who he is; 0: none; -1: any that is free", flag: "read-only-port", in: "kubelet.go"},
		{name: "healthzPort", what: "port of /healthz; without it 10248 in a cluster, else none; 0: none; -1: any that is free", flag: "healthz-port", in: "kubelet.go"},
		{name: "healthzBindAddress", what: "address that it is open at", def: "127.0.0.1", flag: "healthz-bind-address", in: "kubelet.go"},
		{name: "tlsCertFile", what: "certificate to show; without it one is made below --cert-dir", flag: "tls-cert-file", in: "kubelet.go"},
		{name: "tlsPrivateKeyFile", what: "its key; changes of both are seen", flag: "tls-private-key-file", in: "kubelet.go"},
		{name: "serverTLSBootstrap", what: "have the cluster sign a certificate, which somebody has to approve", flag: "rotate-server-certificates", in: "kubelet.go"},
		{name: "tlsMinVersion", what: "oldest version of TLS: VersionTLS12 or VersionTLS13; VersionTLS10 and VersionTLS11 with a warning", def: "VersionTLS12", flag: "tls-min-version", in: "kubelet.go"},
		{name: "tlsCipherSuites", what: "ciphers up to TLS 1.2, insecure ones with a warning; without them Go's choice", flag: "tls-cipher-suites", in: "kubelet.go"},
		{name: "tlsCurvePreferences", what: "numbers of key exchanges; without them Go's choice", in: "kubelet.go"},
		{name: "authentication.x509.clientCAFile", what: "who signs certificates of clients; changes are seen", flag: "client-ca-file", in: "kubelet.go"},
		{name: "authentication.webhook.enabled", what: "have the API server say whose a token is; in a cluster true, else false", flag: "authentication-token-webhook", in: "kubelet.go"},
		{name: "authentication.webhook.cacheTTL", what: "how long it is believed", def: "2m", flag: "authentication-token-webhook-cache-ttl", in: "kubelet.go"},
		{name: "authentication.anonymous.enabled", what: "who shows nothing is system:anonymous", def: "false", flag: "anonymous-auth", in: "kubelet.go"},
		{name: "authorization.mode", what: "Webhook, which the API server decides, or AlwaysAllow; in a cluster Webhook, else it has to be said", flag: "authorization-mode", in: "kubelet.go"},
		{name: "authorization.webhook.cacheAuthorizedTTL", what: "how long a yes is believed", def: "5m", flag: "authorization-webhook-cache-authorized-ttl", in: "kubelet.go"},
		{name: "authorization.webhook.cacheUnauthorizedTTL", what: "how long a no is", def: "30s", flag: "authorization-webhook-cache-unauthorized-ttl", in: "kubelet.go"},
		{name: "streamingConnectionIdleTimeout", what: "how long a stream may be silent", def: "4h", flag: "streaming-connection-idle-timeout", in: "kubelet.go"},
		{name: "enableDebuggingHandlers", what: "logs, exec, attach and port-forward of pods, and what is below", def: "true", flag: "enable-debugging-handlers", in: "kubelet.go"},
		{name: "enableSystemLogHandler", what: "/logs: the files of /var/log", def: "true", in: "kubelet.go"},
		{name: "enableSystemLogQuery", what: "/logs?query=: what services of the machine have logged", def: "false", in: "kubelet.go"},
		{name: "enableProfilingHandler", what: "/debug/pprof", def: "true", in: "kubelet.go"},
		{name: "enableContentionProfiling", what: "count what waits for locks there", flag: "contention-profiling", in: "kubelet.go"},
		{name: "enableDebugFlagsHandler", what: "PUT /debug/flags/v changes how much is logged", def: "true", in: "kubelet.go"},
		{name: "showHiddenMetricsForVersion", does: warned, what: "no metric is hidden"},
	}},
	{"What pods get of the machine", []field{
		{name: "cgroupsPerQOS", what: "make a cgroup for each pod", def: "true", flag: "cgroups-per-qos", in: "cgroups.go"},
		{name: "cgroupDriver", what: "cgroupfs or systemd; what the runtime says counts", flag: "cgroup-driver", in: "cgroups.go"},
		{name: "cgroupRoot", what: "cgroup that holds those of pods; without --config /kubeparts", flag: "cgroup-root", in: "cgroups.go"},
		{name: "systemReserved", what: "resources for daemons of the system", flag: "system-reserved", in: "cgroups.go"},
		{name: "kubeReserved", what: "resources for this agent and the runtime", flag: "kube-reserved", in: "cgroups.go"},
		{name: "systemReservedCgroup", what: "cgroup that gets systemReserved as its limit", flag: "system-reserved-cgroup", in: "cgroups.go"},
		{name: "kubeReservedCgroup", what: "cgroup that gets kubeReserved as its limit", flag: "kube-reserved-cgroup", in: "cgroups.go"},
		{name: "reservedSystemCPUs", what: "CPUs that pods can't have, instead of those of systemReserved and kubeReserved", flag: "reserved-cpus", in: "cgroups.go"},
		{name: "enforceNodeAllocatable", what: "what gets limits", def: "[pods]", flag: "enforce-node-allocatable", in: "cgroups.go"},
		{name: "qosReserved", what: "percent of what Guaranteed and Burstable pods ask for that others can't have", flag: "qos-reserved", in: "cgroups.go"},
		{name: "kubeletCgroups", what: "cgroup that the agent moves into, and whose use is told as that of the system container kubelet; with systemd a slice, or a service that the agent is in", flag: "kubelet-cgroups", in: "cgroups.go"},
		{name: "systemCgroups", what: "cgroup that all processes right in the root are moved into, and whose use is told as that of the system container misc; with systemd a slice", flag: "system-cgroups", in: "cgroups.go"},
		{name: "podPidsLimit", what: "processes that a pod may have; -1: any number", def: "-1", flag: "pod-max-pids", in: "cgroups.go"},
		{name: "cpuCFSQuota", what: "keep limits on CPU", def: "true", flag: "cpu-cfs-quota", in: "cgroups.go"},
		{name: "cpuCFSQuotaPeriod", what: "over how long", def: "100ms", flag: "cpu-cfs-quota-period", in: "cgroups.go"},
		{name: "failSwapOn", what: "don't start on a machine that swaps", def: "true", flag: "fail-swap-on", in: "cgroups.go"},
		{name: "failCgroupV1", what: "don't start on cgroup v1; a kubelet does not by default", def: "false", flag: "fail-cgroupv1", in: "cgroups.go"},
		{name: "protectKernelDefaults", what: "don't change parameters of the kernel, but refuse to start where they are others than a node needs", flag: "protect-kernel-defaults", in: "cgroups.go"},
		{name: "memorySwap.swapBehavior", what: "NoSwap, or LimitedSwap: Burstable pods may swap in proportion to their requests", in: "cgroups.go"},
		{name: "singleProcessOOMKill", what: "have the kernel kill one process of a container for memory, not all of it", in: "cgroups.go"},
		{name: "memoryThrottlingFactor", what: "of MemoryQoS: the part of its limit from which on a container is slowed down", def: "0.9", in: "cgroups.go"},
		{name: "memoryReservationPolicy", what: "of MemoryQoS: None, or TieredReservation", in: "cgroups.go"},
		{name: "cpuManagerPolicy", what: "none, or static: Guaranteed pods get whole CPUs of their own", def: "none", flag: "cpu-manager-policy", in: "managers.go"},
		{name: "cpuManagerPolicyOptions", what: "options of the policy", flag: "cpu-manager-policy-options", in: "managers.go"},
		{name: "cpuManagerReconcilePeriod", does: warned, what: "containers are kept on their CPUs every ten seconds", flag: "cpu-manager-reconcile-period", fine: "10s"},
		{name: "memoryManagerPolicy", what: "None, or Static: Guaranteed pods get memory of certain NUMA nodes", def: "None", flag: "memory-manager-policy", in: "managers.go"},
		{name: "reservedMemory", what: "memory of each NUMA node that pods can't have", flag: "reserved-memory", in: "managers.go"},
		{name: "topologyManagerPolicy", what: "how close together what a container gets has to be", def: "none", flag: "topology-manager-policy", in: "managers.go"},
		{name: "topologyManagerScope", what: "container or pod: what is kept together", def: "container", flag: "topology-manager-scope", in: "managers.go"},
		{name: "topologyManagerPolicyOptions", what: "options of the policy", flag: "topology-manager-policy-options", in: "managers.go"},
	}},
	{"When pods have to go", []field{
		{name: "evictionHard", what: "thresholds at which pods are evicted at once; without --config none", flag: "eviction-hard", in: "evict.go"},
		{name: "evictionSoft", what: "thresholds at which they are after a while", flag: "eviction-soft", in: "evict.go"},
		{name: "evictionSoftGracePeriod", what: "after how long", flag: "eviction-soft-grace-period", in: "evict.go"},
		{name: "evictionMinimumReclaim", what: "how much is freed beyond a threshold", flag: "eviction-minimum-reclaim", in: "evict.go"},
		{name: "evictionPressureTransitionPeriod", what: "how long a condition of the node stays", def: "5m", flag: "eviction-pressure-transition-period", in: "evict.go"},
		{name: "evictionMaxPodGracePeriod", what: "seconds that a pod has to end at a soft threshold", flag: "eviction-max-pod-grace-period", in: "evict.go"},
		{name: "mergeDefaultEvictionSettings", what: "thresholds that evictionHard does not name are the default ones", in: "evict.go"},
		{name: "kernelMemcgNotification", what: "have the kernel tell at once when memory runs low", flag: "kernel-memcg-notification", in: "evict.go"},
		{name: "localStorageCapacityIsolation", what: "keep limits on ephemeral storage", def: "true", flag: "local-storage-capacity-isolation", in: "evict.go"},
		{name: "shutdownGracePeriod", what: "how long the machine waits for pods to end when it stops; see --shutdown-on", flag: "shutdown-grace-period", in: "shutdown.go"},
		{name: "shutdownGracePeriodCriticalPods", what: "of that, what critical pods have, which end last", flag: "shutdown-grace-period-critical-pods", in: "shutdown.go"},
		{name: "shutdownGracePeriodByPodPriority", what: "how long pods have from a priority on, in place of both", in: "shutdown.go"},
	}},
	{"The agent itself", []field{
		{name: "oomScoreAdj", what: "how soon the kernel ends the agent for memory, -1000 to 1000; only with --config, and not with plain processes, which would have it too", def: "-999", flag: "oom-score-adj", in: "self.go"},
		{name: "maxOpenFiles", what: "files that the agent may open; only with --config", def: "1000000", flag: "max-open-files", in: "self.go"},
		{name: "logging.format", what: "text or json", def: "text", flag: "logging-format", in: "logging.go"},
		{name: "logging.verbosity", what: "how much is logged: 0 what goes wrong, 2 what is done, 4 all", flag: "v", in: "logging.go"},
		{name: "logging.vmodule", does: warned, what: "logging.verbosity is for all parts of the agent"},
		{name: "logging.flushFrequency", does: warned, what: "each line is written at once"},
		{name: "logging.options", does: warned, what: "logs go to stderr, each line at once"},
		{name: "tracing", does: warned, what: "the agent makes no traces"},
		{name: "featureGates", what: "see below", flag: "feature-gates", in: "cgroups.go"},
		{name: "makeIPTablesUtilChains", does: warned, what: "kube-proxy and the CNI plugins make their own chains", flag: "make-iptables-util-chains", fine: "false"},
		{name: "iptablesMasqueradeBit", does: warned, what: "kube-proxy and the CNI plugins make their own chains"},
		{name: "iptablesDropBit", does: warned, what: "kube-proxy and the CNI plugins make their own chains"},
	}},
}
