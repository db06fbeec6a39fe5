package untrusted_test

// Reasons why no pod and no other local user can influence a path or a peer.
const (
	kernel  = "a file of the kernel, whose size does not depend on a pod"
	admin   = "named and written by the node's administrator"
	ownRoot = "a directory of the agent, which only its user can write; the number of entries is that of pods or volumes"
	record  = "a record of the agent, in a directory that only its user can write; nothing of it is mounted into a container"
)

// exceptions are the uses of unbounded functions that are correct, with the reason.
// Keys are as the test prints them.
var exceptions = map[string]string{
	"agent/statuspage/node.go ownMemory os.ReadFile": kernel,

	"eviction/notify/notify.go machineUsage os.ReadFile": kernel,
	"eviction/notify/notify.go usageIn os.ReadFile":      kernel,
	"eviction/notify/v1_linux.go register os.Open":       kernel,
	"eviction/notify/v1_linux.go register os.WriteFile":  kernel,

	"kube/kubelet/internal/machine/cgroups.go checkHost os.ReadFile":  kernel,
	"kube/kubelet/internal/machine/cgroups.go checkHost os.WriteFile": kernel,
	"kube/kubelet/config/config.go mergeDir filepath.WalkDir":         admin,
	"kube/kubelet/config/config.go readObject os.Open":                admin + "; a regular file, bounded where it is read",
	"kube/kubelet/internal/stores/host.go SetOOMScore os.OpenFile":    kernel,
	"kube/kubelet/internal/podwing/sources.go earlierPods os.ReadDir": ownRoot,

	"kube/server/streamproxy.go newStreamProxy http.Transport": "to the runtime's streaming server on this machine; a redirect is an error",
	"kube/server/reload.go readLocked os.ReadFile":             admin,

	"runtime/cri/credentials/provider.go configFiles os.ReadDir":    admin,
	"runtime/cri/dns.go ReadResolvConf os.Open":                     admin + "; bounded where it is read",
	"runtime/cri/images/records.go getLocked os.ReadFile":           record,
	"runtime/cri/images/records.go prune os.ReadDir":                record,
	"runtime/cri/images/records.go prune os.ReadFile":               record,
	"runtime/cri/images/records.go readUnsettledLocked os.ReadDir":  record,
	"runtime/cri/images/records.go readUnsettledLocked os.ReadFile": record,
	"runtime/cri/ledger.go OpenLedger os.ReadDir":                   ownRoot,
	"runtime/cri/ledger.go Own os.OpenFile":                         record,
	"runtime/cri/orphans.go removeDeadLinks os.ReadDir":             "the directory of links to logs; a pod that can write the node's log directory is privileged",
	"runtime/cri/orphans.go removeDirs os.ReadDir":                  "the directories of pods and of their logs, of which either may be a link of the administrator's; " + ownRoot,
	"runtime/cri/userns/userns.go Load os.ReadDir":                  ownRoot,
	"runtime/cri/userns/userns.go readLocked os.ReadFile":           record,

	"runtime/process/alive_unix.go holdAlive os.OpenFile":                record,
	"runtime/process/await_linux.go awaitEnd os.OpenFile":                record + "; with O_NONBLOCK",
	"runtime/process/dir.go prepare os.ReadDir":                          ownRoot,
	"runtime/process/dir.go prepare os.ReadFile":                         record,
	"runtime/process/dir.go readRecord os.ReadFile":                      record,
	"runtime/process/process.go load os.ReadDir":                         ownRoot,
	"runtime/process/spawn_unix.go startSupervisor os.OpenFile":          kernel,
	"runtime/process/start.go spawn os.OpenFile":                         record,
	"runtime/process/start.go supervisorOutput os.ReadFile":              record,
	"runtime/process/proc_linux.go readStat os.ReadFile":                 kernel,
	"runtime/process/proc_linux.go processes os.Open":                    kernel,
	"runtime/process/proc_linux.go processes Readdirnames(-1)":           "the number of processes, which the kernel limits",
	"runtime/process/proc_linux.go var os.ReadFile":                      kernel,
	"runtime/process/proc_linux.go marked os.ReadFile":                   "an environment, which the kernel limits to a quarter of the stack",
	"runtime/process/supervisor_unix.go closeInherited os.Open":          kernel,
	"runtime/process/supervisor_unix.go closeInherited Readdirnames(-1)": "the open descriptors of this process",
	"runtime/process/supervisor_unix.go openLog os.OpenFile":             "a log, in a directory that only the agent's user can write, by a supervisor with the rights of that user",
	"runtime/process/supervisor_unix.go startProcess os.Open":            kernel,

	"volume/csi/place.go removeOtherData os.ReadDir":          "the directory of block devices of the node, to which no pod has access",
	"volume/csi/register/register.go list filepath.WalkDir":   "the directory of plugin sockets; a driver that can write it is privileged",
	"volume/csi/register/watch.go watch filepath.WalkDir":     "the directory of plugin sockets; a driver that can write it is privileged",
	"volume/emptydir/emptydir.go setReady os.WriteFile":       record,
	"volume/emptydir/quota_linux.go openDir os.OpenFile":      "only a directory, which is the root of a volume, and no link",
	"volume/emptydir/quota_linux.go reservedProjects os.Open": admin + "; bounded where it is read",
	"volume/hostpath/hostpath.go touch os.OpenFile":           "follows links as a kubelet does, with O_NONBLOCK; the path is the pod's, as all of the host is for a hostPath",
	"volume/objectdir/read.go eachDir os.ReadDir":             admin,
	"volume/objectdir/read.go readDir os.ReadDir":             admin,
	"volume/objectdir/read.go object os.ReadDir":              admin,
	"volume/objectdir/watch.go watch filepath.WalkDir":        admin,
	"volume/orphans.go Retain os.ReadDir":                     ownRoot,
	"volume/orphans.go removePod os.ReadDir":                  ownRoot,
	"volume/ownership_other.go setOwnership filepath.WalkDir": "for systems other than Linux, which run no containers; Linux has a walk without paths",
	"volume/reconstruct.go reconstruct os.ReadDir":            ownRoot,
	"volume/reconstruct.go placesIn os.ReadDir":               ownRoot,
	"volume/checkpoint.go checkpointsIn os.ReadDir":           record,
	"volume/subpath.go removeTargets os.ReadDir":              ownRoot + "; what was mounted there has been unmounted",
	"volume/subpath_linux.go makeTarget os.OpenFile":          ownRoot,
}
