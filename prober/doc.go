// Package prober runs liveness, readiness and startup probes for any runtime.
package prober
