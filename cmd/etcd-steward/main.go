// The etcd-steward binary runs one etcd and looks after its data.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/version"
)

func main() {
	if err := newCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	options := etcd.DefaultOptions()
	command := &cobra.Command{
		Use:   "etcd-steward",
		Short: "Run one etcd and look after its data",
		Long: `etcd-steward runs an etcd in process. Before it starts, the data directory is verified (after a crash in full); data
that is lost, damaged or older than the newest backup is moved aside and restored. When only the write-ahead log is
damaged and the database has more than the newest backup, the data is rebuilt from the database. While it runs, full
snapshots are taken to --backup-dir and pruned, fragmented space is given back, and an exhausted quota is relieved.

With --store-provider, all changes are also saved to a store every --delta-snapshot-period, and what has most is
restored from there or from --backup-dir. A store that fails is told of in the log and in /metrics, and never ends etcd.
Without data, a start waits for the store: an empty etcd beside backups would be a loss.

What was found, restored and is missing, what is backed up and what fails is in JSON at /status of --health-address.

With --members, the etcd is one of three. The first one begins, or goes on with the data that it has; the others join
it. One whose data is lost, damaged or not that of the others joins again while these serve. Nothing is restored while
any of them has data or does not answer: when two are lost, the log says what can be done. With --single-member besides,
there is only the first one yet: it waits for no others, is restored as one without --members, and serves on while they
join it.

With --restore-to and --restore-request, the newest state is restored, once, that was saved until a time. What is there
is saved before, and kept aside. What cannot be restored ends etcd-steward with the reason; it serves the data as it was
when it is started again.`,
		Example: `  # with client certificates and hourly snapshots
  etcd-steward --name etcd-main-0 --data-dir /var/etcd/data --listen-client-urls https://0.0.0.0:2379 \
    --cert-file tls.crt --key-file tls.key --trusted-ca-file ca.crt --backup-dir /var/etcd/backup --snapshot-period 1h

  # every minute, changes are saved to a bucket, whose keys are in a mounted Secret
  etcd-steward --name etcd-main-0 --data-dir /var/etcd/data --backup-dir /var/etcd/backup \
    --store-provider S3 --store-bucket backups --store-prefix shoot--demo--one/main --store-credentials-dir /etc/store

  # one of three members
  etcd-steward --name etcd-main-1 --data-dir /var/etcd/data --listen-client-urls https://0.0.0.0:2379 \
    --advertise-client-urls https://etcd-main-1.etcd-main-peer:2379 --listen-peer-urls https://0.0.0.0:2380 \
    --members etcd-main-0=https://etcd-main-0.etcd-main-peer:2380,etcd-main-1=https://etcd-main-1.etcd-main-peer:2380,\
etcd-main-2=https://etcd-main-2.etcd-main-peer:2380 \
    --cert-file tls.crt --key-file tls.key --trusted-ca-file ca.crt \
    --peer-cert-file peer.crt --peer-key-file peer.key --peer-trusted-ca-file peer-ca.crt`,
		Version:       version.String(),
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			log, err := newLogger()
			if err != nil {
				return err
			}
			return etcd.New(options, log).Run(ctx)
		},
	}
	options.AddFlags(command.Flags())
	command.AddCommand(newVerifyCommand(), newInspectCommand(), newSnapshotsCommand(), newRestoreCommand(),
		newRestorableCommand())
	return command
}

// newLogger logs JSON lines to standard error; --log-level filters only what etcd itself says.
func newLogger() (*zap.Logger, error) {
	config := zap.NewProductionConfig()
	config.Sampling = nil
	config.Level = zap.NewAtomicLevelAt(zap.DebugLevel)
	return config.Build(zap.AddStacktrace(zap.PanicLevel))
}

func newVerifyCommand() *cobra.Command {
	dataDir := etcd.DefaultOptions().DataDir
	command := &cobra.Command{
		Use:   etcd.VerifyCommand,
		Short: "Verify the data of a stopped etcd; fails with what is wrong",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return etcd.Verify(dataDir) },
	}
	command.Flags().StringVar(&dataDir, "data-dir", dataDir, "data directory of etcd")
	return command
}

func newInspectCommand() *cobra.Command {
	dataDir := etcd.DefaultOptions().DataDir
	command := &cobra.Command{
		Use:   etcd.InspectCommand,
		Short: "Verify the database of a stopped etcd without its write-ahead log, and print its revision",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			revision, err := etcd.Inspect(dataDir)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), revision)
			return err
		},
	}
	command.Flags().StringVar(&dataDir, "data-dir", dataDir, "data directory of etcd")
	return command
}

func newSnapshotsCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "snapshots",
		Short: "List the snapshots in a backup directory, newest first",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			list, err := etcd.ListSnapshots(dir)
			for _, snapshot := range list {
				fmt.Fprintf(command.OutOrStdout(), "%s\trevision %d\t%s\n", snapshot.Path, snapshot.Revision,
					snapshot.Taken.UTC().Format(time.RFC3339))
			}
			return err
		},
	}
	command.Flags().StringVar(&dir, "backup-dir", "", "directory of the snapshots")
	return command
}

func newRestoreCommand() *cobra.Command {
	options := etcd.DefaultOptions()
	var path string
	command := &cobra.Command{
		Use:   "restore",
		Short: "Fill an empty data directory from a snapshot",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			log, err := newLogger()
			if err != nil {
				return err
			}
			return etcd.Restore(options.Name, options.DataDir, etcd.Snapshot{Path: path}, log)
		},
	}
	command.Flags().StringVar(&options.Name, "name", options.Name, "name of the member")
	command.Flags().StringVar(&options.DataDir, "data-dir", options.DataDir,
		"data directory of etcd; must hold no data")
	command.Flags().StringVar(&path, "snapshot", "", "file of the snapshot")
	return command
}

func newRestorableCommand() *cobra.Command {
	options := etcd.DefaultOptions()
	command := &cobra.Command{
		Use:   "restorable",
		Short: "List what can be restored from a store, the newest state first",
		Long: `restorable lists full snapshots with the changes that follow them: from when until when there
are any, and how many times they were saved in between. It takes all flags of etcd-steward and uses those of the store,
so that it can be given the arguments of one that runs.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			chains, err := etcd.Restorable(command.Context(), options.Store)
			for _, chain := range chains {
				fmt.Fprintf(command.OutOrStdout(), "%s\t%s\tdeltas %d\trevisions %d to %d\n",
					chain.Full.Taken.Format(time.RFC3339), chain.Taken().Format(time.RFC3339), len(chain.Deltas),
					chain.Full.Last, chain.Last())
			}
			return err
		},
	}
	options.AddFlags(command.Flags())
	return command
}
