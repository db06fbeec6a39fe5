package repo_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forbidden has the packages that no package of a library may import, directly or
// indirectly, unless its importLimit allows it, with the reason. They include the packages
// below them.
var forbidden = map[string]string{
	"k8s.io/client-go":            "is for kube/",
	"k8s.io/kubernetes":           "is for kube/controllers",
	"github.com/stretchr/testify": "is for tests",
	"testing":                     "is for tests",
}

// An importLimit has the imports of a package, except those of its tests.
type importLimit struct {
	// max is the largest number of packages in its closure, itself and the standard library
	// included, as `go list -deps` counts on Linux. docs/packages.md has it.
	max int

	// imports are the packages of this repository that it imports directly, in lexical order.
	imports string

	// allow are the keys of forbidden that it may import.
	allow string
}

// importLimits has each package of the libraries.
var importLimits = map[string]importLimit{
	"allocation/admission":              {max: 300, imports: "allocation internal/podfields internal/podspec runtime"},
	"agent":                             {max: 320, imports: "allocation compose internal/runonce pleg podsource podworker podworker/pipeline prober runtime status"},
	"agent/claim":                       {max: 120, imports: "internal/dirlock internal/untrusted internal/yamljson"},
	"agent/podsapi":                     {max: 400, imports: "internal/runonce internal/unixgrpc"},
	"agent/statuspage":                  {max: 450, imports: "agent agent/statuspage/internal/page cm/stats eviction imagegc internal/conceal internal/podspec internal/terminal internal/untrusted podworker prober runtime runtime/cri volume"},
	"agent/statuspage/internal/page":    {max: 200}, // the standard library is sufficient
	"agent/tracing":                     {max: 300, imports: "logs podworker runtime"},
	"allocation":                        {max: 300, imports: "compose internal/checkpoint internal/podspec runtime"},
	"cm":                                {max: 330, imports: "cm/cgroups cm/topology compose internal/podspec internal/runonce runtime"},
	"cm/cgroups":                        {max: 100},
	"cm/cgroups/host":                   {max: 200, imports: "cm/cgroups"},
	"cm/cpu":                            {max: 330, imports: "cm/state cm/topology compose internal/checkpoint internal/podspec internal/runonce runtime"},
	"cm/device":                         {max: 400, imports: "cm/state cm/topology compose internal/checkpoint internal/podspec internal/runonce internal/unixgrpc"},
	"cm/device/devicetest":              {max: 400, imports: "internal/plugintest"},
	"cm/dra":                            {max: 300, imports: "cm/state compose internal/checkpoint internal/podspec internal/runonce"},
	"cm/dra/dratest":                    {max: 400, imports: "internal/plugintest"},
	"cm/dra/registry":                   {max: 400, imports: "cm/dra internal/runonce logs"},
	"cm/managers":                       {max: 400, imports: "cm/cpu cm/device cm/memory cm/topology internal/podspec logs runtime"},
	"cm/memory":                         {max: 330, imports: "cm/state cm/topology compose internal/checkpoint internal/podspec runtime"},
	"cm/oom":                            {max: 300, imports: "internal/runonce runtime"},
	"cm/podresources":                   {max: 401, imports: "cm/device cm/dra cm/memory internal/podspec internal/runonce internal/unixgrpc"},
	"cm/state":                          {max: 100, imports: "internal/checkpoint"},
	"cm/stats":                          {max: 300, imports: "cm/cgroups internal/runonce internal/untrusted runtime"},
	"cm/topology":                       {max: 330, imports: "compose internal/podspec runtime"},
	"cm/topology/topologytest":          {max: 330, imports: "cm/topology", allow: "testing"},
	"compose":                           {max: 70}, // the standard library is sufficient
	"docs":                              {max: 70},
	"eviction":                          {max: 300, imports: "compose internal/pause internal/podspec internal/runonce runtime"},
	"eviction/notify":                   {max: 120, imports: "internal/runonce"},
	"imagegc":                           {max: 300, imports: "compose internal/checkpoint internal/runonce runtime"},
	"internal/broadcast":                {max: 80},
	"internal/checkpoint":               {max: 80},
	"internal/conceal":                  {max: 60},
	"internal/crilog":                   {max: 60},
	"internal/dirlock":                  {max: 70},
	"internal/gate":                     {max: 40},
	"internal/lab":                      {max: 380, allow: "testing"},
	"internal/mutants":                  {max: 70},
	"internal/pause":                    {max: 50},
	"internal/plugintest":               {max: 320},
	"internal/podfields":                {max: 270},
	"internal/podhttp":                  {max: 270},
	"internal/podspec":                  {max: 280, imports: "runtime"},
	"internal/runonce":                  {max: 70},
	"internal/runonce/runoncetest":      {max: 210, allow: "testing github.com/stretchr/testify"},
	"internal/script":                   {max: 100, allow: "testing"}, // Run requires a *testing.T
	"internal/seedrun":                  {max: 80, allow: "testing"},
	"internal/singleflight":             {max: 50},
	"internal/staticuid":                {max: 290},
	"internal/terminal":                 {max: 60},
	"internal/unixgrpc":                 {max: 320},
	"internal/untrusted":                {max: 70},
	"internal/usernamespace":            {max: 60},
	"internal/yamljson":                 {max: 80},
	"kube/apitest":                      {max: 540, imports: "podsource/manifest runtime", allow: "k8s.io/client-go"}, // 29 are the apply configurations of client-go, with the schemas of server-side apply
	"kube/apitest/internal/conformance": {max: 10},                                                                    // tests only
	"kube/auth":                         {max: 300, imports: "compose"},
	"kube/certs":                        {max: 610, imports: "kube/internal/pause logs", allow: "k8s.io/client-go"},        // mostly client-go's clients
	"kube/client":                       {max: 600, imports: "compose runtime status", allow: "k8s.io/client-go"},          // mostly client-go's clients, which contain every kind
	"kube/controllers":                  {max: 1650, allow: "k8s.io/client-go k8s.io/kubernetes"},                          // mostly what the pod garbage collector imports for one function of the kubelet, and kube-scheduler
	"kube/controllers/apiserver":        {max: 1650, imports: "kube/apitest", allow: "k8s.io/client-go k8s.io/kubernetes"}, // the plugins of admission, with CEL, and the strategies and printers of all kinds
	"kube/csimigration":                 {max: 300, imports: "volume"},
	"kube/fakenode":                     {max: 640, imports: "agent allocation/admission cm/dra cm/state compose kube/client kube/node podsource podsource/manifest podworker podworker/pipeline runtime runtime/fake runtime/runtimetest sim/scheduler status", allow: "k8s.io/client-go testing"}, // no gRPC
	"kube/hollow":                       {max: 760, imports: "kube/auth kube/fakenode kube/metrics kube/server runtime runtime/cri/logread runtime/fake runtime/runtimetest", allow: "k8s.io/client-go testing"},
	"kube/internal/conformance":         {max: 200},
	"kube/internal/pause":               {max: 50},
	"kube/internal/podlog":              {max: 280, imports: "runtime/cri/logread"},
	"kube/kubelet":                      {max: 975, imports: "agent kube/kubelet/internal/edge kube/kubelet/internal/machine kube/kubelet/internal/member kube/kubelet/internal/podwing kube/kubelet/internal/stores kube/kubelet/options", allow: "k8s.io/client-go"},
	"kube/kubelet/config":               {max: 415, imports: "kube/node runtime"},
	"kube/kubelet/internal/machine":     {max: 967, imports: "allocation allocation/admission cm cm/cgroups cm/cgroups/host cm/cpu cm/device cm/managers cm/memory cm/oom cm/podresources cm/state cm/stats cm/topology compose eviction imagegc kube/kubelet/config kube/kubelet/internal/stores kube/kubelet/internal/volumes kube/kubelet/options kube/node podsource podworker podworker/pipeline runtime runtime/cri runtime/cri/credentials runtime/cri/images runtime/cri/logrotate runtime/cri/plan runtime/cri/podconfig runtime/cri/remote runtime/cri/streaming runtime/cri/userns runtime/process volume", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/edge":        {max: 973, imports: "agent agent/statuspage allocation cm/stats cm/topology compose eviction kube/auth kube/certs kube/kubelet/config kube/kubelet/internal/machine kube/kubelet/internal/podwing kube/kubelet/internal/stores kube/kubelet/internal/volumes kube/metrics kube/metrics/remote kube/node kube/server podworker", allow: "k8s.io/client-go"},
	"kube/kubelet/options":              {max: 803, imports: "agent allocation cm cm/stats compose eviction imagegc kube/client kube/node kube/server runtime runtime/cri runtime/cri/logrotate shutdown status volume", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/member":      {max: 972, imports: "agent cm compose eviction kube/kubelet/internal/machine kube/kubelet/internal/podwing kube/kubelet/internal/stores kube/kubelet/internal/volumes kube/node", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/podwing":     {max: 971, imports: "agent agent/podsapi agent/statuspage allocation allocation/admission cm/stats compose eviction eviction/notify kube/kubelet/config kube/kubelet/internal/machine kube/kubelet/internal/stores kube/kubelet/internal/volumes kube/node pleg podsource podworker podworker/pipeline prober prober/grpcprobe runtime shutdown shutdown/logind status", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/stores":      {max: 912, imports: "agent agent/claim agent/statuspage agent/tracing cm cm/cgroups cm/cpu cm/memory cm/topology compose eviction imagegc kube/certs kube/client kube/csimigration kube/internal/pause kube/kubelet/config kube/kubelet/options kube/metrics kube/metrics/cluster kube/metrics/remote kube/node kube/server logs podsource podworker runtime runtime/cri runtime/cri/podconfig shutdown status volume volume/objectdir", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/volumes":     {max: 926, imports: "cm/dra cm/dra/registry cm/state compose kube/client kube/csimigration kube/kubelet/config kube/kubelet/internal/stores runtime volume volume/certificate volume/configmap volume/csi volume/csi/register volume/downward volume/emptydir volume/hostpath volume/image volume/local volume/nfs volume/payload volume/projected volume/secret volume/token", allow: "k8s.io/client-go"},
	"kube/kubelet/internal/wingtest":    {max: 919, imports: "kube/kubelet/config kube/kubelet/internal/stores kube/kubelet/options podworker runtime/cri/fakecri shutdown", allow: "k8s.io/client-go testing"},
	"kube/metrics":                      {max: 380, imports: "allocation cm cm/cgroups cm/cpu cm/memory cm/oom cm/topology eviction imagegc kube/metrics/internal/family pleg podsource podworker podworker/pipeline prober runtime shutdown status volume volume/certificate"}, // neither gRPC nor client-go: kube/metrics/remote and cluster have them
	"kube/metrics/cluster":              {max: 702, imports: "kube/auth kube/client kube/metrics kube/metrics/internal/family kube/node kube/server runtime", allow: "k8s.io/client-go"},                                                                                        // observes client-go and the server of a node
	"kube/metrics/internal/family":      {max: 240},
	"kube/metrics/remote":               {max: 498, imports: "agent/podsapi cm/device cm/dra cm/dra/registry cm/podresources kube/metrics kube/metrics/internal/family runtime runtime/cri runtime/cri/credentials runtime/cri/images volume/csi"}, // the clients of the CRI, of CSI and DRA drivers, and the pods API
	"kube/node":                         {max: 360, imports: "cm/state compose kube/internal/pause runtime"},                                                                                                                                       // the caller supplies the client of the API server
	"kube/provider":                     {max: 320, imports: "agent compose kube/internal/podlog podsource podworker/pipeline prober runtime runtime/cri/logread"},                                                                                 // neither client-go nor virtual-kubelet
	"kube/provider/jobs":                {max: 410, imports: "compose runtime runtime/cri/plan runtime/resolved"},                                                                                                                                  // neither client-go nor virtual-kubelet
	"kube/provider/virtualkubelet":      {max: 1450, imports: "cm/stats compose kube/client kube/metrics kube/provider runtime", allow: "k8s.io/client-go"},                                                                                        // the libraries of the API server, by nodeutil: a module of its own
	"kube/trace":                        {max: 500, imports: "compose runtime/fake sim/cluster", allow: "k8s.io/client-go"},
	"kube/server":                       {max: 400, imports: "compose kube/auth kube/internal/podlog logs runtime runtime/cri/logread runtime/cri/streamserver", allow: "k8s.io/client-go"}, // client-go only for the transports of streams
	"logs":                              {max: 90},
	"pleg":                              {max: 300, imports: "compose internal/runonce runtime"},
	"runtime/podenv":                    {max: 300, imports: "internal/podspec internal/untrusted runtime"},
	"podsource":                         {max: 300, imports: "compose internal/checkpoint internal/runonce podsource/manifest runtime"},
	"podsource/manifest":                {max: 300, imports: "internal/podspec internal/staticuid internal/yamljson runtime"},
	"podworker":                         {max: 300, imports: "compose internal/pause internal/runonce runtime"},
	"podworker/pipeline":                {max: 300, imports: "compose podworker runtime"},
	"prober":                            {max: 300, imports: "compose internal/checkpoint internal/podhttp internal/podspec internal/runonce runtime runtime/podenv"},
	"prober/grpcprobe":                  {max: 400, imports: "prober runtime"},
	"runtime":                           {max: 300},
	"runtime/containers":                {max: 411, imports: "compose internal/checkpoint internal/crilog internal/podspec runtime runtime/cri runtime/cri/podconfig"},                                                                                                                                                   // the engine
	"runtime/containers/containerstest": {max: 417, imports: "compose internal/pause runtime runtime/containers runtime/fake", allow: "testing"},                                                                                                                                                                         // the suite
	"runtime/cri":                       {max: 409, imports: "allocation cm/cgroups compose internal/checkpoint internal/conceal internal/podhttp internal/podspec internal/untrusted logs runtime runtime/cri/credentials runtime/cri/images runtime/cri/plan runtime/cri/podconfig runtime/cri/userns runtime/podenv"}, // the types of the CRI and of credential providers import gRPC; golang.org/x/time/rate
	"runtime/cri/credentials":           {max: 300, imports: "compose internal/singleflight internal/untrusted"},
	"runtime/cri/fakecri":               {max: 400, imports: "internal/broadcast internal/crilog internal/pause internal/untrusted runtime runtime/fake"}, // the types of the CRI import gRPC; runtime/cri/serve has the socket
	"runtime/cri/images":                {max: 400, imports: "compose internal/checkpoint internal/singleflight logs"},
	"runtime/cri/logread":               {max: 300, imports: "compose internal/pause internal/untrusted"},
	"runtime/cri/logrotate":             {max: 300, imports: "internal/pause internal/runonce internal/untrusted runtime"},
	"runtime/cri/plan":                  {max: 300, imports: "cm/cgroups internal/podspec runtime"},
	"runtime/cri/podconfig":             {max: 400, imports: "cm/cgroups internal/podspec runtime runtime/cri/plan runtime/podenv"},
	"runtime/cri/remote":                {max: 400, imports: "logs"},
	"runtime/cri/serve":                 {max: 405, imports: "internal/gate internal/runonce internal/unixgrpc runtime runtime/cri/streamserver"},
	"runtime/cri/streaming":             {max: 300, imports: "runtime"},
	"runtime/cri/streamserver":          {max: 300, imports: "internal/gate runtime"},
	"runtime/cri/userns":                {max: 300, imports: "internal/checkpoint"},
	"runtime/fake":                      {max: 300, imports: "internal/pause runtime"},
	"runtime/process":                   {max: 400, imports: "compose internal/broadcast internal/crilog internal/dirlock internal/untrusted internal/usernamespace runtime"}, // the types of the CRI import gRPC
	"runtime/resolved":                  {max: 410, imports: "internal/podspec runtime runtime/cri/credentials runtime/cri/podconfig runtime/podenv volume/payload volume/token"},
	"runtime/runtimetest":               {max: 300, imports: "compose internal/pause internal/podspec runtime runtime/cri/plan runtime/fake", allow: "testing"}, // the suite requires a *testing.T
	"sim/scheduler":                     {max: 300, imports: "internal/podspec"},
	"shutdown":                          {max: 300, imports: "compose internal/checkpoint internal/podspec internal/runonce runtime"},
	"shutdown/logind":                   {max: 300, imports: "internal/checkpoint shutdown"},
	"sim":                               {max: 335, imports: "agent allocation allocation/admission cm/dra cm/state compose imagegc internal/pause internal/podspec internal/runonce pleg podsource podsource/manifest podworker podworker/pipeline prober runtime runtime/fake runtime/runtimetest sim/timeline status volume", allow: "testing"}, // no gRPC
	"sim/cluster":                       {max: 300, imports: "compose eviction imagegc internal/podspec internal/runonce runtime runtime/cri/plan sim/timeline"},
	"sim/cluster/trace":                 {max: 310, imports: "sim/cluster"},
	"sim/record":                        {max: 430, imports: "agent compose internal/checkpoint internal/runonce pleg podsource podworker podworker/pipeline prober runtime status volume"},
	"sim/replay":                        {max: 470, imports: "agent compose internal/checkpoint internal/podspec pleg podsource podworker podworker/pipeline prober runtime runtime/cri runtime/cri/podconfig sim sim/record sim/timeline sim/virtualtime status", allow: "testing"},
	"sim/simcri":                        {max: 460, imports: "runtime runtime/cri runtime/cri/fakecri runtime/fake sim", allow: "testing"},
	"sim/study":                         {max: 290, imports: "sim/timeline"},
	"sim/timeline":                      {max: 300},
	"sim/virtualtime":                   {max: 90, allow: "testing"}, // a bubble requires a *testing.T
	"status":                            {max: 300, imports: "compose internal/checkpoint internal/podspec internal/runonce runtime"},
	"status/printer":                    {max: 300, imports: "internal/terminal runtime status"},
	"volume":                            {max: 300, imports: "compose internal/checkpoint internal/pause internal/podspec internal/runonce internal/untrusted runtime"}, // k8s.io/mount-utils, and node affinity of k8s.io/component-helpers
	"volume/atomic":                     {max: 80},
	"volume/certificate":                {max: 300, imports: "runtime/podenv"},
	"volume/configmap":                  {max: 300, imports: "volume volume/internal/fileplugin volume/payload"},
	"volume/csi":                        {max: 405, imports: "internal/checkpoint internal/runonce internal/untrusted runtime runtime/podenv volume volume/payload volume/token"},
	"volume/csi/csitest":                {max: 400, imports: "internal/plugintest"},
	"volume/csi/register":               {max: 400, imports: "internal/runonce"},
	"volume/downward":                   {max: 300, imports: "volume/emptydir volume/internal/fileplugin"},
	"volume/emptydir":                   {max: 300, imports: "internal/podspec internal/untrusted internal/usernamespace runtime volume"},
	"volume/hostpath":                   {max: 300, imports: "runtime volume"},
	"volume/image":                      {max: 300, imports: "runtime volume"},
	"volume/internal/fileplugin":        {max: 300, imports: "internal/untrusted runtime volume volume/atomic volume/emptydir volume/payload"},
	"volume/local":                      {max: 300, imports: "runtime volume"},
	"volume/nfs":                        {max: 300, imports: "compose runtime volume"},
	"volume/objectdir":                  {max: 300, imports: "internal/runonce internal/untrusted internal/yamljson volume/payload"},
	"volume/payload":                    {max: 300, imports: "runtime/podenv volume/atomic volume/token"},
	"volume/projected":                  {max: 300, imports: "volume volume/certificate volume/emptydir volume/internal/fileplugin volume/payload volume/token"},
	"volume/secret":                     {max: 300, imports: "volume/emptydir volume/internal/fileplugin volume/payload"},
	"volume/token":                      {max: 300},
	"volume/volumetest":                 {max: 300, imports: "compose runtime volume", allow: "testing"},
}

// A package imports no more than importLimits permits, so that a new dependency is one line
// of a change.
func TestImportsAreLimited(t *testing.T) {
	needRepository(t)
	seen := map[string]bool{}
	listed := listPackages(t)
	for dir, is := range listed.packages {
		if is.program || dir == "" || strings.HasPrefix(dir, "internal/test/") {
			continue
		}
		seen[dir] = true
		limit, ok := importLimits[dir]
		if !assert.True(t, ok, "importLimits has no package %s; it imports %q, and %d packages in all", dir, is.imports, len(is.closure)) {
			continue
		}
		assert.Equal(t, limit.imports, is.imports, "imports of package %s of this repository", dir)
		assert.LessOrEqual(t, len(is.closure), limit.max, "packages that package %s imports, directly and indirectly", dir)
		allowed := strings.Fields(limit.allow)
		used := map[string]bool{}
		for _, dep := range is.closure {
			for bad, why := range forbidden {
				if dep != bad && !strings.HasPrefix(dep, bad+"/") {
					continue
				}
				used[bad] = true
				assert.Contains(t, allowed, bad, "package %s imports %s, which %s", dir, dep, why)
			}
		}
		for _, bad := range allowed {
			assert.True(t, used[bad], "package %s does not import %s", dir, bad)
		}
	}
	for dir := range importLimits {
		assert.True(t, seen[dir] || !listed.has(dir), "importLimits has package %s, which does not exist", dir)
	}
}

// module is the prefix of the import path of every package of the repository.
const module = "github.com/kubeparts/kubeparts/"

// A listedPackage is a package of the repository as the go command lists it.
type listedPackage struct {
	program bool     // package main
	imports string   // packages of the repository that it imports directly, in lexical order
	closure []string // import paths of itself and of all that it imports
}

// A listing has the packages of the modules of the libraries on Linux.
type listing struct {
	packages map[string]listedPackage // by directory

	// unlisted are the modules outside of the workspace whose dependencies are not on this
	// machine. A test downloads nothing; the step packages of .ci/run does.
	unlisted []string
}

// has reports whether the packages of a directory are listed.
func (l listing) has(dir string) bool {
	return !slices.ContainsFunc(l.unlisted, func(m string) bool { return dir == m || strings.HasPrefix(dir, m+"/") })
}

// listPackages lists the packages. It skips t in the core module without the modules below it.
func listPackages(t *testing.T) listing {
	t.Helper()
	needRepository(t)
	listed, err := listOnce()
	require.NoError(t, err)
	if len(listed.unlisted) > 0 {
		message := "the dependencies of " + strings.Join(listed.unlisted, ", ") + " are not on this machine: `go mod download` in these directories, or `bash .ci/run packages`"
		require.Empty(t, os.Getenv("KUBEPARTS_CI"), message)
		t.Log("not checked: " + message)
	}
	return listed
}

var listOnce = sync.OnceValues(func() (listing, error) {
	l := listing{packages: map[string]listedPackage{}}
	for _, m := range []struct {
		dir      string
		patterns []string
		env      []string
	}{
		{dir: ".", patterns: []string{"./...", "./kube/..."}},
		{dir: "kube/controllers", patterns: []string{"./..."}, env: []string{"GOWORK=off"}},
		{dir: virtualkubelet, patterns: []string{"./..."}}, // which has a go.work of its own
	} {
		out, err := goList(m.dir, m.env, m.patterns)
		if err != nil && m.dir != "." {
			l.unlisted = append(l.unlisted, m.dir)
			continue
		}
		if err != nil {
			return l, err
		}
		for line := range strings.Lines(out) {
			f := strings.Split(strings.TrimSpace(line), "|")
			var own []string
			for path := range strings.FieldsSeq(f[2]) {
				if dir, ok := strings.CutPrefix(path, module); ok {
					own = append(own, dir)
				}
			}
			slices.Sort(own)
			dir := strings.TrimSuffix(strings.TrimPrefix(f[0]+"/", module), "/")
			l.packages[dir] = listedPackage{program: f[1] == "main", imports: strings.Join(own, " "), closure: append(strings.Fields(f[3]), f[0])}
		}
	}
	return l, nil
})

// goList lists packages without a network, a line for each: path, name, imports, and all that
// is imported. A list that lacks a dependency is an error.
func goList(dir string, env, patterns []string) (string, error) {
	list := exec.Command("go", append([]string{"list", "-f", "{{.ImportPath}}|{{.Name}}|{{join .Imports \" \"}}|{{join .Deps \" \"}}|{{.Incomplete}}"}, patterns...)...)
	list.Dir = filepath.Join(root, dir)
	list.Env = slices.Concat(os.Environ(), []string{"GOOS=linux", "CGO_ENABLED=1", "GOPROXY=off"}, env)
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	if err == nil && (len(out) == 0 || strings.Contains(string(out), "|true\n")) {
		err = errors.New("packages or their dependencies are missing")
	}
	if err != nil {
		return "", fmt.Errorf("go list in %s: %w\n%s", dir, err, stderr.String())
	}
	return string(out), nil
}
