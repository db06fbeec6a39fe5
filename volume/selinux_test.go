package volume

import (
	"errors"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
)

// The volumes that are mounted with an SELinux label, and the label (vol-13).
func TestSELinuxMountLabel(t *testing.T) {
	options := func(level string) *v1.SELinuxOptions { return &v1.SELinuxOptions{Level: level} }
	recursive, mount := v1.SELinuxChangePolicyRecursive, v1.SELinuxChangePolicyMountOption
	rwop := []v1.PersistentVolumeAccessMode{v1.ReadWriteOncePod}
	use := func(change ...func(*seLinuxUse)) seLinuxUse {
		u := seLinuxUse{enabled: true, supported: true, accessModes: rwop, containers: []*v1.SELinuxOptions{options("s0:c1,c2")}}
		for _, f := range change {
			f(&u)
		}
		return u
	}
	for name, c := range map[string]struct {
		use  seLinuxUse
		want string
		err  string
	}{
		"ReadWriteOncePod":          {use: use(), want: "file:s0:c1,c2"},
		"SELinux is off":            {use: use(func(u *seLinuxUse) { u.enabled = false })},
		"the plugin cannot":         {use: use(func(u *seLinuxUse) { u.supported = false })},
		"a device":                  {use: use(func(u *seLinuxUse) { u.block = true })},
		"no persistent volume":      {use: use(func(u *seLinuxUse) { u.accessModes = nil })},
		"ReadWriteOnce":             {use: use(func(u *seLinuxUse) { u.accessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce} }), want: "file:s0:c1,c2"},
		"ReadWriteOncePod and more": {use: use(func(u *seLinuxUse) { u.accessModes = append(rwop[:1:1], v1.ReadOnlyMany) }), want: "file:s0:c1,c2"},
		"before 1.37":               {use: use(func(u *seLinuxUse) { u.onlyOnePod = true }), want: "file:s0:c1,c2"},
		"ReadWriteOnce before 1.37": {use: use(func(u *seLinuxUse) {
			u.accessModes, u.onlyOnePod = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce}, true
		})},
		"ReadWriteOncePod and more before 1.37": {use: use(func(u *seLinuxUse) { u.accessModes, u.onlyOnePod = append(rwop[:1:1], v1.ReadOnlyMany), true })},
		"policy Recursive":                      {use: use(func(u *seLinuxUse) { u.policy = &recursive })},
		"policy MountOption":                    {use: use(func(u *seLinuxUse) { u.policy = &mount }), want: "file:s0:c1,c2"},
		"no container uses it":                  {use: use(func(u *seLinuxUse) { u.containers = nil })},
		"no options":                            {use: use(func(u *seLinuxUse) { u.containers = []*v1.SELinuxOptions{nil} })},
		"no level":                              {use: use(func(u *seLinuxUse) { u.containers = []*v1.SELinuxOptions{{Type: "spc_t"}} })},
		"one without options":                   {use: use(func(u *seLinuxUse) { u.containers = append(u.containers, nil) }), want: "file:s0:c1,c2"},
		"equal levels":                          {use: use(func(u *seLinuxUse) { u.containers = append(u.containers, options("s0:c1,c2")) }), want: "file:s0:c1,c2"},
		"different levels": {
			use: use(func(u *seLinuxUse) { u.containers = append(u.containers, options("s0:c3")) }),
			err: `containers have different SELinux labels, "file:s0:c1,c2" and "file:s0:c3"`,
		},
		"different levels, Recursive": {use: use(func(u *seLinuxUse) {
			u.containers, u.policy = append(u.containers, options("s0:c3")), &recursive
		})},
		"a level that adds a mount option": {
			use: use(func(u *seLinuxUse) { u.containers = []*v1.SELinuxOptions{options(`s0",suid,x="`)} }),
			err: `SELinux label "file:s0\",suid,x=\"" has characters that no label has`,
		},
		"a level that is none": {
			use: use(func(u *seLinuxUse) { u.containers = []*v1.SELinuxOptions{options("bad")} }),
			err: "SELinux label of options {User: Role: Type: Level:bad}: invalid",
		},
	} {
		got, err := c.use.label(func(o *v1.SELinuxOptions) (string, error) {
			if o.Level == "bad" {
				return "", errors.New("invalid")
			}
			return "file:" + o.Level, nil
		})
		assert.Equal(t, c.want, got, name)
		if c.err == "" {
			assert.NoError(t, err, name)
		} else {
			assert.EqualError(t, err, c.err, name)
		}
	}
}

// The label of files is the policy's context with the container's user and level.
func TestSELinuxFileLabel(t *testing.T) {
	const context = "system_u:object_r:container_file_t:s0"
	for name, c := range map[string]struct {
		options *v1.SELinuxOptions
		want    string
	}{
		"none":          {nil, context},
		"empty":         {&v1.SELinuxOptions{}, context},
		"level":         {&v1.SELinuxOptions{Level: "s0:c1,c2"}, "system_u:object_r:container_file_t:s0:c1,c2"},
		"user":          {&v1.SELinuxOptions{User: "user_u"}, "user_u:object_r:container_file_t:s0"},
		"role and type": {&v1.SELinuxOptions{Role: "system_r", Type: "container_t"}, context},
	} {
		assert.Equal(t, c.want, seLinuxFileLabel(context, c.options), name)
	}
	assert.Empty(t, seLinuxFileLabel("", &v1.SELinuxOptions{Level: "s0:c1"}), "no policy for containers")
}

func TestSELinuxFileContext(t *testing.T) {
	file := func(content string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(content)} }
	const contexts = "process = \"system_u:system_r:container_t:s0\"\nfile = \"system_u:object_r:container_file_t:s0\"\nro_file=\"system_u:object_r:container_ro_file_t:s0\"\n"
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"no policy": {fstest.MapFS{}, ""},
		"containers": {fstest.MapFS{"usr/share/containers/selinux/contexts": file(contexts)},
			"system_u:object_r:container_file_t:s0"},
		"lxc": {fstest.MapFS{
			"etc/selinux/config": file("# comment\nSELINUX=enforcing\nSELINUXTYPE=targeted\n"), "etc/selinux/targeted/contexts/lxc_contexts": file(contexts),
		}, "system_u:object_r:container_file_t:s0"},
		"no context of files": {fstest.MapFS{"usr/share/containers/selinux/contexts": file("process = \"x\"\n")}, ""},
	} {
		got, err := seLinuxFileContext(c.files)
		assert.NoError(t, err, name)
		assert.Equal(t, c.want, got, name)
	}
	_, err := seLinuxFileContext(fstest.MapFS{"usr/share/containers/selinux/contexts": file("file = \"container_file_t\"")})
	assert.ErrorContains(t, err, "has no level")
}
