package process

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/usernamespace"
)

// defaultPath is used if neither the container nor the agent has a PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Variables added to the environment of each container.
const (
	// envContainerID identifies the container of a process that does not clear
	// its environment, so that it is found without its supervisor.
	envContainerID = "KUBEPARTS_CONTAINER_ID"

	// envTerminationLog is the host path of the file that would be mounted at
	// /dev/termination-log.
	envTerminationLog = "KUBEPARTS_TERMINATION_LOG"
)

// environment returns the complete environment of a process: the requested one,
// in which the last entry of a name applies, and the defaults.
func environment(asked []*runtimeapi.KeyValue, defaults [][2]string) [][]byte {
	var env [][]byte
	at := map[string]int{}
	set := func(key, value string) {
		if i, ok := at[key]; ok {
			env[i] = []byte(key + "=" + value)
			return
		}
		at[key] = len(env)
		env = append(env, []byte(key+"="+value))
	}
	for _, kv := range asked {
		set(kv.GetKey(), string(kv.GetValue()))
	}
	for _, kv := range defaults {
		if _, ok := at[kv[0]]; !ok && kv[1] != "" {
			set(kv[0], kv[1])
		}
	}
	return env
}

// lookup returns the value of a variable in env.
func lookup(env [][]byte, key string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(string(kv), "="); k == key {
			return v
		}
	}
	return ""
}

// findCommand returns the executable for name, for a process in dir with this
// PATH.
func findCommand(name, dir, path string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("command is empty")
	}
	if strings.ContainsRune(name, '/') {
		file := name
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		if err := executable(file); err != nil {
			return "", fmt.Errorf("command %q: %w (it runs on the host: images are not pulled)", name, err)
		}
		return file, nil
	}
	for _, elem := range filepath.SplitList(path) {
		// An empty or relative element means the working directory to a shell;
		// it is ignored here.
		if file := filepath.Join(elem, name); filepath.IsAbs(elem) && executable(file) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("command %q: not found in PATH %q of the host (images are not pulled)", name, path)
}

func executable(file string) error {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory", file)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", file)
	}
	return nil
}

// terminationLog returns the host path of the file for the termination message:
// the mount at the path in the kubelet's annotation.
func terminationLog(cfg *runtimeapi.ContainerConfig) string {
	at := cfg.GetAnnotations()["io.kubernetes.container.terminationMessagePath"]
	if at == "" {
		at = "/dev/termination-log"
	}
	for _, m := range cfg.GetMounts() {
		if m.GetContainerPath() == at {
			return m.GetHostPath()
		}
	}
	return ""
}

// An account is the user and the groups of the agent.
type account struct {
	uid, gid    int
	groups      []int
	fixedGroups bool // its processes cannot change their supplemental groups, even as root
}

func self() account {
	groups, _ := os.Getgroups() // none if not supported
	return account{uid: os.Geteuid(), gid: os.Getegid(), groups: groups, fixedGroups: usernamespace.DeniesSetgroups(os.DirFS("/"))}
}

// credentialFor returns the credential for the user that a container requests, and
// the home directory if it is known. A nil credential means the user of the
// agent. Only root can use another user.
func credentialFor(sc *runtimeapi.LinuxContainerSecurityContext, me account) (*credential, string, error) {
	asksUser := sc.GetRunAsUser() != nil || sc.GetRunAsUsername() != ""
	if !asksUser && sc.GetRunAsGroup() == nil && len(sc.GetSupplementalGroups()) == 0 {
		return nil, "", nil
	}
	if sc.GetRunAsGroup() != nil && !asksUser {
		return nil, "", fmt.Errorf("run_as_group without run_as_user or run_as_username")
	}

	uid := int64(me.uid)
	var known *user.User
	switch {
	case sc.GetRunAsUser() != nil:
		uid = sc.GetRunAsUser().GetValue()
		known, _ = user.LookupId(strconv.FormatInt(uid, 10)) // one without an entry is fine
	case sc.GetRunAsUsername() != "":
		var err error
		if known, err = user.Lookup(sc.GetRunAsUsername()); err != nil {
			return nil, "", fmt.Errorf("run_as_username: %w", err)
		}
		if uid, err = strconv.ParseInt(known.Uid, 10, 64); err != nil {
			return nil, "", fmt.Errorf("run_as_username: %w", err)
		}
	}

	// Without a group: the user's own, or the one with the same number. Group 0,
	// the default in images, is root's on a host.
	gid := uid
	switch {
	case sc.GetRunAsGroup() != nil:
		gid = sc.GetRunAsGroup().GetValue()
	case uid == int64(me.uid):
		gid = int64(me.gid)
	case known != nil:
		if n, err := strconv.ParseInt(known.Gid, 10, 64); err == nil {
			gid = n
		}
	}

	groups := slices.Clone(sc.GetSupplementalGroups())
	if known != nil && uid != int64(me.uid) && sc.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Merge {
		ids, _ := known.GroupIds() // if they are unknown, none are added
		for _, s := range ids {
			if n, err := strconv.ParseInt(s, 10, 64); err == nil && n != gid && !slices.Contains(groups, n) {
				groups = append(groups, n)
			}
		}
	}

	for _, n := range append([]int64{uid, gid}, groups...) {
		if n < 0 || n > 1<<32-2 {
			return nil, "", fmt.Errorf("user or group %d is out of range", n)
		}
	}
	var home string
	if known != nil {
		home = known.HomeDir
	}
	if me.uid != 0 {
		if uid != int64(me.uid) || gid != int64(me.gid) {
			return nil, "", fmt.Errorf("user %d and group %d: the agent runs as user %d and group %d, and only root can change them", uid, gid, me.uid, me.gid)
		}
		for _, g := range groups {
			if g != gid && !slices.Contains(me.groups, int(g)) {
				return nil, "", fmt.Errorf("supplemental group %d: the agent is not a member, and only root can add it", g)
			}
		}
		return nil, home, nil
	}
	if me.fixedGroups && len(groups) > 0 {
		return nil, "", fmt.Errorf("supplemental groups %v: the user namespace of the agent denies setgroups", groups)
	}
	cred := &credential{UID: uint32(uid), GID: uint32(gid)}
	for _, g := range groups {
		cred.Groups = append(cred.Groups, uint32(g))
	}
	return cred, home, nil
}
