package repo_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A gRPC server is made by internal/unixgrpc, which bounds its connections and calls. Packages for
// tests have servers of their own.
func TestGRPCServersAreBounded(t *testing.T) {
	needRepository(t)
	for _, name := range filesWhere(t, isCode) {
		dir := name[:strings.LastIndex("/"+name, "/")]
		if strings.HasPrefix(name, "internal/unixgrpc/") || strings.HasPrefix(name, "test/") || strings.HasSuffix(strings.TrimSuffix(dir, "/"), "test") {
			continue
		}
		assert.False(t, bytes.Contains(read(t, name), []byte("grpc.NewServer(")), "%s: use unixgrpc.Serve", name)
	}
}
