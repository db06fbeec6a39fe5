package fakecri_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

func codeOf(err error) int {
	if exit, ok := errors.AsType[utilexec.CodeExitError](err); ok {
		return exit.Code
	}
	return 0
}

func TestCommandsAreAnsweredByTheFirstRuleThatFits(t *testing.T) {
	b := fake.Behavior{Commands: []fake.Command{
		{Prefix: "check db", Stdout: "db ok", Takes: time.Minute},
		{Prefix: "check", Stdout: "half", Stderr: "broken", ExitCode: 3},
		{Prefix: "warm-up", Fails: 2},
	}}
	on(t, does(b), func(n *node) {
		id, _ := n.started()
		run := func(words string) string {
			stdout, stderr, err := n.ExecSync(n.ctx, id, strings.Fields(words), 0)
			return fmt.Sprintf("%s|%s|%d", stdout, stderr, codeOf(err))
		}
		begin := time.Now()
		assert.Equal(n, "db ok||0", run("check db now"))
		assert.Equal(n, time.Minute, time.Since(begin))
		assert.Equal(n, "half|broken|3", run("check"))
		assert.Equal(n, "||0", run("anything else"))
		assert.Equal(n, "||0", run("chec"))
		for _, want := range []string{"||1", "||1", "||0", "||0"} {
			assert.Equal(n, want, run("warm-up"))
		}
	})
}

// A command ends with its timeout, its caller's context, its container, or the
// daemon.
func TestACommandEndsInManyWays(t *testing.T) {
	hang := func(ctx context.Context, _ []string, _ runtime.Streams) (int32, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	on(t, does(fake.Behavior{Exec: hang}), func(n *node) {
		id, _ := n.started()
		begin := time.Now()
		_, _, err := n.ExecSync(n.ctx, id, []string{"x"}, 5*time.Second)
		hasCode(n.T, codes.DeadlineExceeded, err)
		assert.ErrorContains(n, err, "timeout 5s exceeded: context deadline exceeded")
		assert.Equal(n, 5*time.Second, time.Since(begin))

		ctx, cancel := context.WithTimeout(n.ctx, time.Second)
		_, _, err = n.ExecSync(ctx, id, []string{"x"}, 5*time.Second)
		cancel()
		hasCode(n.T, codes.DeadlineExceeded, err)
		assert.NotContains(n, err.Error(), "timeout 5s")

		ctx, cancel = context.WithCancel(n.ctx)
		time.AfterFunc(time.Second, cancel)
		_, err = n.StreamExec(ctx, id, []string{"x"}, runtime.Streams{})
		hasCode(n.T, codes.Canceled, err)

		time.AfterFunc(time.Second, n.Down)
		_, _, err = n.ExecSync(n.ctx, id, []string{"x"}, 0)
		hasCode(n.T, codes.Unavailable, err)
		n.Up()

		time.AfterFunc(time.Second, func() { assert.NoError(n, n.Exit("a", "web", 0)) })
		_, _, err = n.ExecSync(n.ctx, id, []string{"x"}, 0)
		assert.Equal(n, 137, codeOf(err), "%v", err)

		_, _, err = n.ExecSync(n.ctx, id, []string{"x"}, 0)
		hasCode(n.T, codes.Unknown, err)
		assert.ErrorContains(n, err, "it is exited")
	})
}

func TestACommandHasAllStreams(t *testing.T) {
	cat := func(_ context.Context, cmd []string, s runtime.Streams) (int32, error) {
		in, err := io.ReadAll(s.Stdin)
		fmt.Fprintf(s.Stdout, "out %s %s;", cmd, in)
		fmt.Fprint(s.Stderr, "err;")
		return int32(len(in)), err
	}
	on(t, does(fake.Behavior{Exec: cat}), func(n *node) {
		id, _ := n.started()
		var out, errOut bytes.Buffer
		code, err := n.StreamExec(n.ctx, id, []string{"cat"}, runtime.Streams{Stdin: strings.NewReader("abc"), Stdout: &out, Stderr: &errOut})
		require.NoError(n, err)
		assert.EqualValues(n, 3, code)
		assert.Equal(n, "out [cat] abc;|err;", out.String()+"|"+errOut.String())

		out.Reset()
		_, err = n.StreamExec(n.ctx, id, []string{"cat"}, runtime.Streams{Stdout: &out, Stderr: &errOut, TTY: true})
		require.NoError(n, err)
		assert.Equal(n, "out [cat] ;err;|err;", out.String()+"|"+errOut.String(), "a terminal has one output")

		code, err = n.StreamExec(n.ctx, id, []string{"cat"}, runtime.Streams{})
		require.NoError(n, err)
		assert.Zero(n, code)
	})
}

func TestExecSyncKeeps16MiBOfAnOutput(t *testing.T) {
	flood := func(_ context.Context, _ []string, s runtime.Streams) (int32, error) {
		for range 20 {
			if _, err := s.Stdout.Write(make([]byte, 1<<20)); err != nil {
				return 0, err
			}
		}
		return 0, nil
	}
	on(t, does(fake.Behavior{Exec: flood}), func(n *node) {
		id, _ := n.started()
		out, _, err := n.ExecSync(n.ctx, id, []string{"x"}, 0)
		require.NoError(n, err)
		assert.Len(n, out, 16<<20)
	})
}

func TestAnExecIsCheckedBeforeItsCommandRuns(t *testing.T) {
	cfg := does(fake.Behavior{})
	cfg.Faults = fake.On(fake.Always(fake.Fault{Err: status.Error(codes.Internal, "hit")}), "StreamExec")
	on(t, cfg, func(n *node) {
		id, sandbox := n.started()
		created := n.created(sandbox, "a", "other", 0)
		for _, c := range []struct {
			id   string
			cmd  []string
			want codes.Code
		}{
			{"absent", []string{"x"}, codes.NotFound},
			{"", []string{"x"}, codes.Unknown},
			{created, []string{"x"}, codes.Unknown},
			{id, nil, codes.Unknown},
			{id, []string{"x"}, codes.OK},
		} {
			_, _, err := n.ExecSync(n.ctx, c.id, c.cmd, 0)
			hasCode(n.T, c.want, err)
		}
		_, err := n.StreamExec(n.ctx, id, []string{"x"}, runtime.Streams{})
		hasCode(n.T, codes.Internal, err)
		for want, id := range map[codes.Code]string{codes.Unimplemented: id, codes.Unknown: created, codes.NotFound: "absent"} {
			_, err := n.Runtime.Exec(n.ctx, &runtimeapi.ExecRequest{ContainerId: id})
			hasCode(n.T, want, err)
			_, err = n.Runtime.Attach(n.ctx, &runtimeapi.AttachRequest{ContainerId: id})
			hasCode(n.T, want, err)
		}
	})
}
