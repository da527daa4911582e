#!/bin/sh
# What the image runs: `lakewarden ...`, a Spark executor (as Spark on Kubernetes calls it), or any other program.
set -e
case "$1" in
executor)
    # Spark numbers its Java options in the environment: SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...
    number=0
    while eval "[ -n \"\${SPARK_JAVA_OPT_$number+set}\" ]"; do
        eval "set -- \"\$@\" \"\$SPARK_JAVA_OPT_$number\""
        number=$((number + 1))
    done
    shift
    exec tini -s -- java "$@" -Xms"$SPARK_EXECUTOR_MEMORY" -Xmx"$SPARK_EXECUTOR_MEMORY" \
        -cp "$SPARK_HOME/conf:$SPARK_CLASSPATH:$SPARK_HOME/jars/*" \
        org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
        --driver-url "$SPARK_DRIVER_URL" --executor-id "$SPARK_EXECUTOR_ID" --cores "$SPARK_EXECUTOR_CORES" \
        --app-id "$SPARK_APPLICATION_ID" --hostname "$SPARK_EXECUTOR_POD_IP" \
        --resourceProfileId "${SPARK_RESOURCE_PROFILE_ID:-0}" --podName "$SPARK_EXECUTOR_POD_NAME"
    ;;
/* | sh | bash | python | java | lakewarden)
    exec tini -s -g -- "$@"
    ;;
*)
    exec tini -s -- lakewarden "$@"
    ;;
esac
