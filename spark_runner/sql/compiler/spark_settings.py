"""The settings of Spark: those that a script may change, and those that only the start of Spark reads.

They are those of all lines from 4.0 to 4.3; a test compares them with those of the installed Spark.
"""

_SESSION = "spark.sql."
_FAMILIES = """
acls admin appStateStore archives authenticate barrier blockManager broadcast buffer checkpoint cleaner cores
decommission default diskStore driver dynamicAllocation eventLog excludeOnFailure executor extraListeners
files hadoopRDD history io jars kerberos kryo kryoserializer kubernetes locality log master memory metrics
modify network plugins pyspark python rdd redaction reducer resources rpc scheduler security serializer
shuffle shutdown speculation stage standalone storage submit task taskMetrics ui unsafe worker yarn
"""
FIXED_FAMILIES = tuple(f"spark.{family}." for family in _FAMILIES.split())
"""Settings that begin so are read at its start alone; Spark refuses to change those that it knows."""

_STATIC = """
spark.python.sql.dataFrameDebugging.enabled spark.sql.artifact.copyFromLocalToFs.allowDestLocal
spark.sql.avro.schemaUrlAllowedSchemes spark.sql.broadcastExchange.maxThreadThreshold
spark.sql.cache.serializer spark.sql.catalog.spark_catalog.defaultDatabase spark.sql.catalogImplementation
spark.sql.codegen.cache.maxEntries spark.sql.codegen.comments spark.sql.debug
spark.sql.defaultUrlStreamHandlerFactory.enabled spark.sql.event.truncate.length spark.sql.extensions
spark.sql.extensions.test.loadFromCp spark.sql.filesourceTableRelationCacheSize spark.sql.globalTempDatabase
spark.sql.hive.metastore.barrierPrefixes spark.sql.hive.metastore.jars spark.sql.hive.metastore.jars.path
spark.sql.hive.metastore.sharedPrefixes spark.sql.hive.metastore.version
spark.sql.hive.thriftServer.http.sniHostCheckEnabled spark.sql.hive.thriftServer.singleSession
spark.sql.hive.version spark.sql.kafka.disallowedOptions
spark.sql.legacy.hive.thriftServer.allowSettingSystemProperties spark.sql.legacy.sessionInitWithConfigDefaults
spark.sql.metadataCacheTTLSeconds spark.sql.queryExecutionListeners spark.sql.reflect.allowList
spark.sql.restrictedMode.enabled spark.sql.resultQueryStage.maxThreadThreshold
spark.sql.shuffleExchange.maxThreadThreshold spark.sql.sources.disabledJdbcConnProviderList
spark.sql.sources.schemaStringLengthThreshold spark.sql.streaming.streamingQueryListeners
spark.sql.streaming.ui.enabled spark.sql.streaming.ui.enabledCustomMetricList
spark.sql.streaming.ui.retainedProgressUpdates spark.sql.streaming.ui.retainedQueries
spark.sql.subquery.maxThreadThreshold spark.sql.ui.retainedExecutions spark.sql.warehouse.dir
"""
STATIC = frozenset(_STATIC.split())
"""Settings of sessions that no session can change."""

_OF_HADOOP = """
adl avro com datanucleus dfs file fs ftp google ha hadoop hbase hive hoodie httpfs iceberg io ipc javax.jdo
map mapred mapreduce net nfs orc parquet rpc security seq ssl tfile yarn zlib
"""
HADOOP_FAMILIES = tuple(f"{family}." for family in _OF_HADOOP.split())
"""Settings of Hadoop, and of what uses its configuration, begin so: Spark passes them on."""

_OF_SESSIONS = """
adaptive.advisoryPartitionSizeInBytes adaptive.autoBroadcastJoinThreshold adaptive.coalescePartitions.enabled
adaptive.coalescePartitions.initialPartitionNum adaptive.coalescePartitions.maxReducerPartitionsPerTask
adaptive.coalescePartitions.minPartitionSize adaptive.coalescePartitions.parallelismFirst
adaptive.convertSortMergeJoinToShuffledHashJoin.enabled
adaptive.convertSortMergeJoinToShuffledHashJoin.lookThroughOperators.enabled
adaptive.convertSortMergeJoinToShuffledHashJoin.minWideningFactor
adaptive.costEvaluator.countLocalSort.enabled adaptive.customCostEvaluatorClass adaptive.enabled
adaptive.forceOptimizeSkewedJoin adaptive.localShuffleReader.enabled
adaptive.maxShuffledHashJoinLocalMapThreshold adaptive.optimizeSkewsInRebalancePartitions.enabled
adaptive.optimizer.excludedRules adaptive.rebalancePartitionsSmallPartitionFactor adaptive.skewJoin.enabled
adaptive.skewJoin.skewedPartitionFactor adaptive.skewJoin.skewedPartitionThresholdInBytes
allowNamedFunctionArguments ansi.doubleQuotedIdentifiers ansi.enabled ansi.enforceReservedKeywords
ansi.relationPrecedence autoBroadcastJoinThreshold avro.compression.codec avro.deflate.level
avro.filterPushdown.enabled avro.xz.level avro.zstandard.bufferPool.enabled avro.zstandard.level
binaryOutputStyle broadcastTimeout bucketing.coalesceBucketsInJoin.enabled
bucketing.coalesceBucketsInJoin.maxBucketRatio cbo.enabled cbo.joinReorder.dp.star.filter
cbo.joinReorder.dp.threshold cbo.joinReorder.enabled cbo.planStats.enabled cbo.starSchemaDetection
charAsVarchar chunkBase64String.enabled classic.shuffleDependency.fileCleanup.enabled cli.print.header
collation.allowInMapKeys columnNameOfCorruptRecord connect.shuffleDependency.fileCleanup.enabled
connect.streaming.foreachBatch.useClonedSession csv.filterPushdown.enabled datetime.java8API.enabled
debug.maxToStringFields defaultCacheStorageLevel defaultCatalog defaultPath dropTableOnView.enabled
error.messageFormat execution.arrow.cache.prefetch.enabled execution.arrow.compression.codec
execution.arrow.compression.zstd.level execution.arrow.enabled execution.arrow.fallback.enabled
execution.arrow.localRelationThreshold execution.arrow.maxRecordsPerBatch execution.arrow.pyspark.enabled
execution.arrow.pyspark.fallback.enabled execution.arrow.pyspark.selfDestruct.enabled
execution.arrow.pyspark.validateSchema.enabled execution.arrow.pythonUDF.columnarInput.enabled
execution.arrow.sparkr.enabled execution.arrow.transformWithStateInPandas.maxRecordsPerBatch
execution.arrow.transformWithStateInPySpark.maxStateRecordsPerBatch
execution.arrow.useLargeVarTypes execution.bypassPartialAggregation execution.interruptOnCancel
execution.pandas.inferPandasDictAsMap execution.pandas.structHandlingMode execution.pandas.udf.buffer.size
execution.pyspark.binaryAsBytes execution.pyspark.udf.daemonKillWorkerOnFlushFailure
execution.pyspark.udf.faulthandler.enabled execution.pyspark.udf.hideTraceback.enabled
execution.pyspark.udf.idleTimeoutSeconds execution.pyspark.udf.killOnIdleTimeout
execution.pyspark.udf.simplifiedTraceback.enabled execution.pyspark.udf.tracebackDumpIntervalSeconds
execution.pyspark.udf.tracebackWithLocals.enabled execution.python.udf.buffer.size
execution.python.udf.maxRecordsPerBatch execution.pythonUDF.arrow.concurrency.level
execution.pythonUDF.arrow.enabled execution.pythonUDF.pandas.intToDecimalCoercionEnabled
execution.pythonUDF.pandas.preferIntExtensionDtype execution.pythonUDTF.arrow.enabled
execution.topKSortFallbackThreshold execution.udf.unified.execution.enabled
experimental.optimizer.pyTranspilers experimental.optimizer.transpilePyUDFs extendedExplainProviders
fileSource.insert.enforceNotNull files.archive.reader.enabled files.ignoreCorruptFiles
files.ignoreInvalidPartitionPaths files.ignoreMissingFiles files.ignoredPathSegmentRegex
files.maxPartitionBytes files.maxPartitionNum files.maxRecordsPerFile files.minPartitionNum
function.concatBinaryAsString function.eltOutputAsString function.protobufExtensions.enabled
generatedColumn.allowNullableIngest.enabled groupByAliases groupByOrdinal
hive.convertInsertingPartitionedTable hive.convertInsertingUnpartitionedTable hive.convertMetastoreAsNullable
hive.convertMetastoreCtas hive.convertMetastoreInsertDir hive.convertMetastoreOrc hive.convertMetastoreParquet
hive.convertMetastoreParquet.mergeSchema hive.dropPartitionByName.enabled
hive.filesourcePartitionFileCacheSize hive.initializeMetastoreFormatClasses hive.manageFilesourcePartitions
hive.metastorePartitionPruning hive.metastorePartitionPruningFallbackOnException
hive.metastorePartitionPruningFastFallback hive.showCreateTableAsSerde hive.thriftServer.async
icu.caseMappings.enabled inMemoryColumnarStorage.batchSize inMemoryColumnarStorage.compressed
inMemoryColumnarStorage.enableVectorizedReader inMemoryColumnarStorage.hugeVectorReserveRatio
inMemoryColumnarStorage.hugeVectorThreshold insertIntoReplaceOn.enabled insertIntoReplaceUsing.enabled
json.filterPushdown.enabled json.useUnsafeRow jsonGenerator.ignoreNullFields leafNodeDefaultParallelism
legacy.hive.thriftServer.useZeroBasedColumnOrdinalPosition mapKeyDedupPolicy
maven.additionalRemoteRepositories maxBroadcastTableSize maxMetadataStringLength maxPlanStringLength
maxSinglePartitionBytes operatorPipeSyntaxEnabled optimizer.avoidCollapseUDFWithExpensiveExpr
optimizer.avoidDoubleFilterEval optimizer.collapseProjectAlwaysInline
optimizer.dynamicPartitionPruning.enabled optimizer.enableCsvExpressionOptimization
optimizer.enableJsonExpressionOptimization optimizer.excludedRules
optimizer.mergeSubplans.filterPropagation.dsv2SymmetricFilterPropagation.enabled
optimizer.mergeSubplans.filterPropagation.enabled
optimizer.mergeSubplans.filterPropagation.symmetricFilterPropagation.enabled
optimizer.mergeSubplans.filterPropagation.throughJoin.enabled optimizer.pushDownJoinThroughUnion.enabled
optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold
optimizer.runtime.bloomFilter.creationSideThreshold optimizer.runtime.bloomFilter.enabled
optimizer.runtime.bloomFilter.expectedNumItems optimizer.runtime.bloomFilter.materializedCreationSideThreshold
optimizer.runtime.bloomFilter.maxNumBits optimizer.runtime.bloomFilter.maxNumItems
optimizer.runtime.bloomFilter.numBits optimizer.runtime.rowLevelOperationGroupFilter.enabled
optimizer.runtimeFilter.number.threshold optimizer.singleTaskExecution.enabled orc.aggregatePushdown
orc.columnarReaderBatchSize orc.columnarWriterBatchSize orc.compression.codec
orc.enableNestedColumnVectorizedReader orc.enableVectorizedReader orc.filterPushdown orc.mergeSchema
orderByOrdinal parquet.aggregatePushdown parquet.binaryAsString parquet.columnarReaderBatchSize
parquet.compression.codec parquet.enableNestedColumnVectorizedReader parquet.enableVectorizedReader
parquet.fieldId.read.enabled parquet.fieldId.read.ignoreMissing parquet.fieldId.write.enabled
parquet.filterPushdown parquet.inferTimestampNTZ.enabled parquet.int96AsTimestamp
parquet.int96TimestampConversion parquet.mergeSchema parquet.outputTimestampType
parquet.recordLevelFilter.enabled parquet.respectSummaryFiles parquet.writeLegacyFormat
parser.quotedRegexColumnNames parser.singleCharacterPipeOperator.enabled path.enabled
pipelines.maxFlowRetryAttempts pivotMaxValues planner.pythonExecution.memory preserveCharVarcharTypeInfo
pyspark.dataSource.profiler pyspark.inferNestedDictAsStruct.enabled pyspark.jvmStacktrace.enabled
pyspark.plotting.max_rows pyspark.toJSON.returnDataFrame pyspark.udf.profiler pyspark.worker.logging.enabled
readSideCharPadding redaction.options.regex redaction.string.regex repl.eagerEval.enabled
repl.eagerEval.maxNumRows repl.eagerEval.truncate scripting.enabled session.localRelationCacheThreshold
session.localRelationChunkSizeBytes session.localRelationChunkSizeRows session.timeZone
shuffle.orderIndependentChecksum.enableFullRetryOnMismatch shuffle.orderIndependentChecksum.enabled
shuffle.partitions shuffle.spreadNullJoinKeys.enabled shuffleDependency.fileCleanup.enabled
shuffleDependency.skipMigration.enabled shuffledHashJoinFactor sources.bucketing.autoBucketedScan.enabled
sources.bucketing.enabled sources.bucketing.maxBuckets sources.default
sources.parallelPartitionDiscovery.threshold sources.partitionColumnTypeInference.enabled
sources.partitionOverwriteMode sources.structPredicateDecompose.enabled
sources.v2.bucketing.allowCompatibleTransforms.enabled
sources.v2.bucketing.allowJoinKeysSubsetOfPartitionKeys.enabled
sources.v2.bucketing.allowKeysSubsetOfPartitionKeys.enabled sources.v2.bucketing.enabled
sources.v2.bucketing.partiallyClusteredDistribution.enabled sources.v2.bucketing.partition.filter.enabled
sources.v2.bucketing.partitionKeyOrdering.enabled sources.v2.bucketing.preserveKeyOrderingOnCoalesce.enabled
sources.v2.bucketing.preserveOrderingOnCoalesce.enabled sources.v2.bucketing.pushPartValues.enabled
sources.v2.bucketing.shuffle.enabled sources.v2.bucketing.sorting.enabled stackTracesInDataFrameContext
statistics.fallBackToHdfs statistics.histogram.enabled statistics.size.autoUpdate.enabled
statistics.updatePartitionStatsInAnalyzeTable.enabled storeAssignmentPolicy streaming.checkpointLocation
streaming.continuous.epochBacklogQueueSize streaming.disabledV2Writers streaming.fileSource.cleaner.numThreads
streaming.forceDeleteTempCheckpointLocation streaming.metricsEnabled streaming.minBatchesToRetain
streaming.multipleWatermarkPolicy streaming.noDataMicroBatches.enabled streaming.numRecentProgressUpdates
streaming.realTimeMode.allowlistCheck streaming.realTimeMode.minBatchDuration
streaming.sessionWindow.merge.sessions.in.local.partition streaming.stateStore.commitValidation.enabled
streaming.stateStore.encodingFormat streaming.stateStore.stateSchemaCheck streaming.stopActiveRunOnRestart
streaming.stopTimeout streaming.transformWithState.stateSchemaVersion
streaming.validateEventTimeWatermarkColumn thriftServer.catalogMetadata.enabled thriftServer.interruptOnCancel
thriftServer.queryTimeout thriftserver.scheduler.pool thriftserver.shuffleDependency.fileCleanup.enabled
thriftserver.ui.retainedSessions thriftserver.ui.retainedStatements timeTravel.atSyntax.enabled
timeTravelTimestampKey timeTravelVersionKey timestampType transposeMaxValues
tvf.allowMultipleTableArguments.enabled udt.allowCreatingUDTFromString udt.allowedDynamicUDTClasses
ui.explainMode variable.substitute window.segmentTree.blockSize window.segmentTree.enabled
xml.variant.respectInferSchema
"""
SESSION_KEYS = frozenset(f"{_SESSION}{name}" for name in _OF_SESSIONS.split())
"""The documented settings of sessions."""
